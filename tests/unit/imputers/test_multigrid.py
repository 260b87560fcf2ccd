"""Both multigrid solvers against a literal reference, exact solutions and the M-matrix bound."""

import multiprocessing
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.sparse import csc_array, diags_array, kron
from scipy.sparse.linalg import splu

from pretend_device import PretendDevice
from references import PAPER_WEIGHTS, dense_fill, literal_fill
from roadworthy.core.errors import EverythingRemovedError, RangeError, ShapeError, SolverError
from roadworthy.core.masks import blobs, removed_at
from roadworthy.core.random import Key
from roadworthy.imputers.noise import Noise
from roadworthy.imputers.solvers import multigrid, multigrid_memory, multigrid_torch

Mask = NDArray[np.bool_]
SOLVERS = pytest.mark.parametrize("solve", [multigrid.solve, multigrid_torch.solve], ids=["numba", "torch"])
FRACTIONS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
ROUNDING = 1e-6
"""float32 pixels in [0, 1]: a few units in the last place."""


def random_image(height: int, width: int, channels: int = 3, seed: int = 0) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    layers = [gaussian_filter(rng.standard_normal((channels, height, width)), (0, s, s)) * s for s in (0.5, 2, 8)]
    image = np.sum(layers, axis=0)
    return ((image - image.min()) / np.ptp(image)).astype(np.float32)


def highest(values: NDArray[np.float64], fraction: float) -> Mask:
    """Remove the highest values: at least one pixel is removed and one kept."""
    count = min(max(int(fraction * values.size + 0.5), 1), values.size - 1)
    return (np.argsort(np.argsort(-values, axis=None)) < count).reshape(values.shape)


def masks(height: int, width: int, seed: int = 0) -> Iterator[tuple[str, Mask]]:
    """Masks as attribution maps give them, difficult ones, and extremes."""
    rng = np.random.default_rng(seed)
    down, right = np.mgrid[:height, :width]
    radius = np.hypot(down / height - 0.5, right / width - 0.5)
    for fraction in FRACTIONS:
        yield f"scattered {fraction}", highest(rng.random((height, width)), fraction)
        noise = rng.standard_normal((height, width))
        yield f"blobs {fraction}", highest(gaussian_filter(noise, max(height, width) / 10), fraction)
        yield f"ring {fraction}", highest(-abs(radius - 0.33), fraction)
        comb = right % max(2, round(1 / (1 - fraction))) > 0
        comb[-1] |= width > 1
        comb[0, 0] = False
        yield f"comb {fraction}", comb
    corner = np.ones((height, width), bool)
    corner[0, 0] = False
    yield "one corner kept", corner.copy()
    corner[-1, -1] = False
    yield "two corners kept", corner
    yield "checkerboard", (down + right) % 2 == 1
    yield "border kept", (down > 0) & (down < height - 1) & (right > 0) & (right < width - 1)
    yield "one pixel removed", (down == height // 2) & (right == width // 2)


def matrix(removed: Mask, weights: tuple[float, float] = PAPER_WEIGHTS) -> tuple[csc_array, csc_array]:
    """A over the removed pixels, and the weights of their kept neighbors over the whole image."""

    def steps(size: int) -> csc_array:
        return csc_array(diags_array([1.0, 1.0], offsets=[-1, 1], shape=(size, size)) if size > 1 else (1, 1))

    height, width = removed.shape
    ones = [csc_array(diags_array(np.ones(size))) for size in (height, width)]
    direct = kron(steps(height), ones[1]) + kron(ones[0], steps(width))
    links = csc_array(weights[0] * direct + weights[1] * kron(steps(height), steps(width)))
    unknown = removed.ravel()
    whole = csc_array(diags_array(np.asarray(links.sum(axis=1)).ravel()) - links)
    return whole[unknown][:, unknown], links[unknown] @ csc_array(diags_array((~unknown).astype(float)))


def exact_fill(image: NDArray[np.float32], removed: Mask) -> NDArray[np.float64]:
    inside, known = matrix(removed)
    filled = image.astype(np.float64)
    factors = splu(inside, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    filled[:, removed] = factors.solve(known @ filled.reshape(len(image), -1).T).T
    return filled


def run(solve, image, removed, weights=PAPER_WEIGHTS):
    return solve(torch.from_numpy(image)[None], torch.from_numpy(removed)[None], weights)[0].numpy()


@SOLVERS
@pytest.mark.parametrize("weights", [PAPER_WEIGHTS, (1.0, 0.0), (0.2, 0.7), (3.0, 1.0)])
@pytest.mark.parametrize(("height", "width", "channels"), [(5, 7, 3), (1, 9, 1), (8, 1, 5), (2, 11, 3), (12, 2, 1)])
def test_small_images_agree_with_the_dense_solution(solve, weights, height, width, channels):
    for name, removed in masks(height, width):
        if removed.any():
            image = random_image(height, width, channels)
            expected = dense_fill(image, removed, weights)
            assert np.abs(run(solve, image, removed, weights) - expected).max() <= multigrid.TOLERANCE, name


def test_the_two_references_agree_and_the_corner_obeys_the_papers_equation():
    image, removed = random_image(6, 5), np.zeros((6, 5), bool)
    removed[0, 0] = removed[3, 1:] = True
    dense, literal = dense_fill(image, removed), literal_fill(image, removed)
    np.testing.assert_allclose(dense, literal, atol=1e-12)
    # 5/12·x00 = 1/6·x10 + 1/6·x01 + 1/12·x11
    expected = (image[:, 1, 0] / 6 + image[:, 0, 1] / 6 + image[:, 1, 1] / 12) * 12 / 5
    np.testing.assert_allclose(literal[:, 0, 0], expected, atol=1e-7)


@SOLVERS
@pytest.mark.parametrize(("height", "width"), [(28, 28), (32, 32), (33, 65), (1, 300), (300, 1), (2, 97), (150, 3)])
def test_every_mask_is_solved_to_the_tolerance(solve, height, width):
    image = random_image(height, width)
    for name, removed in masks(height, width):
        if removed.any():
            error = np.abs(run(solve, image, removed) - exact_fill(image, removed)).max()
            assert error <= multigrid.TOLERANCE, name


@pytest.mark.parametrize(("height", "width"), [(224, 224), (500, 333)])
def test_large_images_are_solved_to_the_tolerance(height, width):
    image = random_image(height, width, channels=1)
    for name, removed in masks(height, width):
        if not name.endswith(("0.1", "0.3", "0.7", "0.9")):
            error = np.abs(run(multigrid.solve, image, removed) - exact_fill(image, removed)).max()
            assert error <= multigrid.TOLERANCE, name


def test_the_m_matrix_bound_holds_for_a_large_image():
    # A⁻¹ ≥ 0, so ‖error‖∞ ≤ ‖A⁻¹‖∞·‖residual‖∞ = ‖u‖∞·‖residual‖∞ with A u = 1; removed regions are small, so u is too.
    image, removed = random_image(512, 512, channels=1), highest(np.random.default_rng(0).random((512, 512)), 0.3)
    inside, known = matrix(removed)
    filled = run(multigrid.solve, image, removed).astype(np.float64)
    residual = known @ filled.ravel() - inside @ filled[:, removed].ravel()
    bound = splu(inside).solve(np.ones(len(residual))).max() * np.abs(residual).max()
    assert bound <= multigrid.TOLERANCE


@SOLVERS
def test_one_black_and_one_white_kept_pixel_are_enough(solve):
    image, removed = np.zeros((1, 200, 150), np.float32), np.ones((200, 150), bool)
    image[0, 120, 40], removed[120, 40], removed[3, 3] = 1.0, False, False
    error = np.abs(run(solve, image, removed) - exact_fill(image, removed)).max()
    assert error <= multigrid.TOLERANCE


def test_the_two_solvers_agree():
    image = random_image(61, 44, channels=5)
    for name, removed in masks(61, 44):
        difference = np.abs(run(multigrid.solve, image, removed) - run(multigrid_torch.solve, image, removed)).max()
        assert difference <= multigrid.TOLERANCE, name


def test_iterations_do_not_grow_with_the_image(monkeypatch):
    counts = []
    monkeypatch.setattr(multigrid, "refuse_failures", lambda errors, iterations, size: counts.append(iterations.max()))
    for side in (32, 128, 512):
        values = gaussian_filter(np.random.default_rng(0).standard_normal((side, side)), 1)
        for fraction in (0.1, 0.5, 0.9):
            run(multigrid.solve, random_image(side, side), highest(values, fraction))
    assert max(counts) <= 7


@SOLVERS
def test_kept_pixels_are_bit_equal_and_the_input_is_not_modified(solve):
    image, (_, removed) = random_image(20, 31), next(iter(masks(20, 31)))
    image[0, ~removed] = np.float32(-0.0)
    images, mask = torch.from_numpy(image)[None], torch.from_numpy(removed)[None]
    before = images.clone(), mask.clone()
    filled = solve(images, mask, PAPER_WEIGHTS)
    assert filled.dtype == torch.float32
    assert filled.numpy()[0][:, ~removed].tobytes() == image[:, ~removed].tobytes()
    assert torch.equal(images, before[0])
    assert torch.equal(mask, before[1])
    assert filled.data_ptr() != images.data_ptr()


@SOLVERS
def test_an_image_with_nothing_removed_is_copied(solve):
    images = torch.from_numpy(random_image(9, 9))[None]
    filled = solve(images, torch.zeros(1, 9, 9, dtype=torch.bool), PAPER_WEIGHTS)
    assert torch.equal(filled, images)
    assert filled.data_ptr() != images.data_ptr()


@SOLVERS
def test_an_empty_batch_is_returned_empty(solve):
    assert solve(torch.zeros(0, 3, 8, 8), torch.zeros(0, 8, 8, dtype=torch.bool), PAPER_WEIGHTS).shape == (0, 3, 8, 8)


def batch(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Easy and difficult masks, and one with nothing removed."""
    removed = np.stack([*[mask for _, mask in masks(height, width)], np.zeros((height, width), bool)])
    images = np.stack([random_image(height, width, seed=i) for i in range(len(removed))])
    return torch.from_numpy(images), torch.from_numpy(removed)


@SOLVERS
def test_a_solution_does_not_depend_on_the_batch(solve):
    images, removed = batch(24, 37)
    together = solve(images, removed, PAPER_WEIGHTS)
    backwards = solve(images.flip(0), removed.flip(0), PAPER_WEIGHTS).flip(0)
    alone = torch.cat([solve(images[i : i + 1], removed[i : i + 1], PAPER_WEIGHTS) for i in range(len(images))])
    assert torch.equal(together, backwards)
    assert torch.equal(together, alone)


def test_a_channel_does_not_depend_on_the_others():
    images, removed = batch(64, 65)
    each = [multigrid.solve(images[:, c : c + 1], removed, PAPER_WEIGHTS) for c in range(3)]
    assert torch.equal(multigrid.solve(images, removed, PAPER_WEIGHTS), torch.cat(each, dim=1))


def test_a_solution_does_not_depend_on_what_the_thread_solved_before():
    images, removed = batch(24, 37)
    expected = multigrid.solve(images, removed, PAPER_WEIGHTS)
    with pytest.raises(SolverError):  # overflows, and leaves infinities and NaN in the working memory
        multigrid.solve(images * 3e38, removed, PAPER_WEIGHTS)
    assert multigrid._space(24, 37, multigrid.LIMIT) is multigrid._space(24, 37, multigrid.LIMIT)
    assert torch.equal(multigrid.solve(images, removed, PAPER_WEIGHTS), expected)


def test_a_refused_image_leaves_nothing_behind():
    images, removed = batch(24, 37)
    expected, broken = multigrid.solve(images, removed, PAPER_WEIGHTS), images.clone()
    broken[:, :, 0, 0] = torch.where(removed[:, :1, 0], 0.5, float("nan"))
    with pytest.raises(RangeError):
        multigrid.solve(broken, removed, PAPER_WEIGHTS)
    assert torch.equal(multigrid.solve(images, removed, PAPER_WEIGHTS), expected)


@SOLVERS
def test_a_solution_does_not_depend_on_the_number_of_threads(solve):
    images, removed = batch(64, 65)
    threads, fills = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            fills += [solve(images, removed, PAPER_WEIGHTS), solve(images[-3:-2], removed[-3:-2], PAPER_WEIGHTS)]
    finally:
        torch.set_num_threads(threads)
    for i, filled in enumerate(fills):
        assert (filled - fills[i % 2]).abs().max() <= (0 if solve is multigrid.solve else ROUNDING)  # torch: LAPACK's


def test_several_python_threads_may_solve_at_once():
    images, removed = batch(64, 65)
    expected, solutions = multigrid.solve(images, removed, PAPER_WEIGHTS), {}

    def work(name: int) -> None:
        solutions[name] = multigrid.solve(images, removed, PAPER_WEIGHTS)

    workers = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(torch.equal(solutions[name], expected) for name in range(4))


def _solve_in_child(queue, images, removed):
    # Torch must not use threads here, nor change their number: its OpenMP does not survive a fork.
    queue.put(multigrid.solve(torch.from_numpy(images), torch.from_numpy(removed), PAPER_WEIGHTS).numpy().tobytes())


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_worker_gets_its_own_threads():
    images, removed = batch(64, 65)
    expected = multigrid.solve(images, removed, PAPER_WEIGHTS).numpy().tobytes()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_solve_in_child, args=(queue, images.numpy(), removed.numpy()), daemon=True)
    child.start()
    try:
        assert queue.get(timeout=60) == expected
    finally:
        child.kill()
        child.join()


@SOLVERS
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.bfloat16])
def test_other_precisions_are_converted(solve, dtype):
    image, removed = random_image(16, 17), highest(np.random.default_rng(1).random((16, 17)), 0.5)
    images, mask = torch.from_numpy(image)[None].to(dtype), torch.from_numpy(removed)[None]
    filled = solve(images, mask, PAPER_WEIGHTS)
    assert filled.dtype == torch.float32
    assert torch.equal(filled, solve(images.float(), mask, PAPER_WEIGHTS))


@SOLVERS
def test_strided_tensors_that_require_grad_are_accepted(solve):
    images, removed = batch(20, 22)
    strided = images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2).requires_grad_()
    mask = removed.mT.contiguous().mT
    filled = solve(strided, mask, PAPER_WEIGHTS)
    assert not filled.requires_grad
    assert torch.equal(filled, solve(images, removed, PAPER_WEIGHTS))


@SOLVERS
def test_removed_values_do_not_matter_even_nan(solve):
    image, removed = random_image(32, 32), highest(np.random.default_rng(2).random((32, 32)), 0.6)
    poisoned = image.copy()
    poisoned[:, removed] = np.nan
    poisoned[0, removed] = np.inf
    assert run(solve, poisoned, removed).tobytes() == run(solve, image, removed).tobytes()


@SOLVERS
def test_the_tolerance_is_relative_to_the_range_of_the_data(solve):
    image, removed = random_image(32, 32) * np.float32(255), highest(np.random.default_rng(3).random((32, 32)), 0.8)
    error = np.abs(run(solve, image, removed) - exact_fill(image, removed)).max()
    assert error <= 255 * multigrid.TOLERANCE


@SOLVERS
def test_a_constant_image_stays_constant(solve):
    removed = highest(np.random.default_rng(4).random((50, 40)), 0.95)
    filled = run(solve, np.full((3, 50, 40), 0.3, np.float32), removed)
    assert np.abs(filled - np.float32(0.3)).max() <= ROUNDING


@SOLVERS
def test_a_large_image_with_two_kept_pixels_is_solved(solve):
    # With two kept corners the solution is antisymmetric about the center, whatever the size.
    image, removed = np.zeros((1, 1001, 801), np.float32), np.ones((1001, 801), bool)
    image[0, -1, -1], removed[0, 0], removed[-1, -1] = 1.0, False, False
    filled = run(solve, image, removed)
    assert np.abs(filled + filled[:, ::-1, ::-1] - 1).max() <= 2 * multigrid.TOLERANCE


@SOLVERS
def test_everything_removed_is_an_error_that_names_the_image(solve):
    removed = torch.zeros(3, 8, 8, dtype=torch.bool)
    removed[1] = True
    with pytest.raises(EverythingRemovedError, match="image 1"):
        solve(torch.rand(3, 2, 8, 8), removed, PAPER_WEIGHTS)


@SOLVERS
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_non_finite_kept_pixels_are_an_error_that_names_the_image(solve, value):
    images = torch.rand(3, 2, 8, 8)
    images[2, 1, 4, 4] = value
    removed = torch.zeros(3, 8, 8, dtype=torch.bool)
    removed[:, 0, 0] = True
    with pytest.raises(RangeError, match="image 2"):
        solve(images, removed, PAPER_WEIGHTS)


@SOLVERS
def test_wrong_shapes_dtypes_and_weights_are_errors(solve):
    images, removed = torch.rand(2, 3, 8, 8), torch.zeros(2, 8, 8, dtype=torch.bool)
    with pytest.raises(ShapeError, match=r"\(2, 8, 7\)"):
        solve(images, removed[..., 1:], PAPER_WEIGHTS)
    with pytest.raises(ShapeError, match="uint8"):
        solve(images, removed.byte(), PAPER_WEIGHTS)
    for weights in ((0.0, 1.0), (1.0, -0.1), (float("nan"), 1.0), (1.0, float("inf"))):
        with pytest.raises(RangeError, match="direct > 0"):
            solve(images, removed, weights)


@pytest.mark.parametrize("module", [multigrid, multigrid_torch])
def test_missing_the_tolerance_is_an_error_that_names_the_image(module, monkeypatch):
    monkeypatch.setattr(module, "LIMIT", 1)
    images, removed = batch(24, 37)
    with pytest.raises(SolverError, match=r"image 0 of the batch \(24 × 37\).* after 1 iterations"):
        module.solve(images, removed, PAPER_WEIGHTS)


def test_without_a_writable_cache_the_kernel_is_compiled_in_memory(monkeypatch):
    def njit(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available for file")
        return lambda function: function

    def kernel() -> None: ...

    monkeypatch.setattr(multigrid_memory.numba, "njit", njit)
    assert multigrid_memory.cached(kernel) is kernel


def test_cached_machine_code_is_named_after_all_source_files(tmp_path, monkeypatch):
    def cache_name() -> str:
        def kernel() -> None: ...

        return multigrid_memory.cached(kernel).py_func.__qualname__

    for source in Path(multigrid_memory.__file__).parent.glob("multigrid_*.py"):
        shutil.copy(source, tmp_path)
    monkeypatch.setattr(multigrid_memory, "__file__", str(tmp_path / "multigrid_memory.py"))
    before = cache_name()
    assert cache_name() == before
    with (tmp_path / "multigrid_cycle.py").open("a") as file:
        file.write("# changed\n")
    assert cache_name() != before


@SOLVERS
def test_noise_is_added_to_removed_pixels_from_the_field_of_each_image(solve):
    images, removed = Key(3).uniform([7, 4, 7], (2, 6, 5)), Key(4).uniform(range(3), (6, 5)) < 0.5
    noise = Noise.drawn(Key(5), torch.tensor([7, 4, 7]), (2, 6, 5), 0.25)
    smooth, noisy = solve(images, removed, PAPER_WEIGHTS), solve(images, removed, PAPER_WEIGHTS, noise)
    fields = Key(5).fold("noise").normal([7, 4, 7], (2, 6, 5))
    mask = removed[:, None].expand_as(images)
    # Sums of two float32 numbers of about 1 may be rounded differently.
    assert torch.allclose(noisy[mask], (smooth + 0.25 * fields)[mask], rtol=0, atol=1e-6)
    assert torch.equal(noisy[~mask], images[~mask])


@pytest.mark.parametrize(("side", "most"), [(12, 580), (32, 870), (224, 1740)])
def test_on_a_device_launches_do_not_grow_with_the_batch_and_the_host_waits_once(side, most):
    launches = []
    for images, channels in ((1, 3), (4, 1), (4, 3)):
        pixels = Key(0).uniform(range(images), (channels, side, side))
        removed = removed_at(blobs(range(images), (side, side), Key(1)), 0.5)
        with PretendDevice() as device:
            arguments = device.place(pixels), device.place(removed)
            before = device.alive
            filled = multigrid_torch.solve(*arguments, PAPER_WEIGHTS)
        expected = multigrid.solve(pixels, removed, PAPER_WEIGHTS)
        assert (filled.inner - expected).abs().max() <= multigrid.TOLERANCE
        assert device.to_host == [(3 + 3 * multigrid_torch.CYCLES, images, channels)]
        assert not device.to_device
        assert not device.waits
        assert device.peak - before <= images * multigrid_torch.bytes_per_image(channels, side, side)
        launches.append(sum(device.launches.values()))
    assert len(set(launches)) == 1
    assert launches[0] <= most


def test_on_a_device_hard_masks_get_more_cycles_and_change_no_other_image(monkeypatch):
    monkeypatch.setattr(multigrid_torch, "CYCLES", 3)  # enough for one removed pixel, not for blobs
    images, removed = batch(24, 37)
    with PretendDevice() as device:
        filled = multigrid_torch.solve(device.place(images), device.place(removed), PAPER_WEIGHTS)
    assert device.to_host == [(3 + 9, len(images), 3), (3 + 18, len(images), 3)]
    assert device.to_device == [(len(images), 3)]  # which planes are done
    alone = torch.cat(
        [multigrid_torch.solve(images[i : i + 1], removed[i : i + 1], PAPER_WEIGHTS) for i in range(len(images))]
    )
    assert torch.equal(filled.inner, alone)
    assert (filled.inner - multigrid.solve(images, removed, PAPER_WEIGHTS)).abs().max() <= multigrid.TOLERANCE


def test_a_batch_beyond_the_working_memory_is_solved_in_parts(monkeypatch):
    images, removed = batch(24, 37)
    expected = multigrid_torch.solve(images, removed, PAPER_WEIGHTS)
    monkeypatch.setattr(multigrid_torch, "WORKING_MEMORY", 5 * multigrid_torch.bytes_per_image(3, 24, 37))
    with PretendDevice() as device:
        filled = multigrid_torch.solve(device.place(images), device.place(removed), PAPER_WEIGHTS)
    assert all(shape[1] <= 5 for shape in device.to_host)
    assert sum(shape[1] for shape in device.to_host) >= len(images)
    assert torch.equal(filled.inner, expected)


def test_no_byte_depends_on_the_batch_or_on_where_arrays_lie_in_memory():
    # With reciprocals in place of divisions 1 shape in 7 did: loops have variants, chosen by the addresses of arrays.
    generator = np.random.default_rng(0)
    for _ in range(80):
        height, width, count, channels = (
            int(generator.integers(*ends)) for ends in ((2, 40), (2, 40), (1, 24), (1, 5))
        )
        images = torch.from_numpy(generator.random((count, channels, height, width), dtype=np.float32))
        removed = torch.from_numpy(generator.random((count, height, width)) < generator.random((count, 1, 1)))
        removed[:, 0, 0] = False
        kept = [_with_new_memory(images, removed) for _ in range(2)]
        assert torch.equal(*kept)
        row = int(generator.integers(count))
        assert torch.equal(_with_new_memory(images[row : row + 1], removed[row : row + 1]), kept[0][row : row + 1])


def _with_new_memory(images, removed):
    vars(multigrid._KEPT).clear()
    return multigrid.solve(images, removed, PAPER_WEIGHTS)
