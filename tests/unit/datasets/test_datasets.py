"""Datasets check their input, keep order and ids, and do not modify the caller's arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
)

from roadworthy.core.errors import DataError, InputError, RangeError, ShapeError
from roadworthy.core.types import UNLABELED, Batch
from roadworthy.core.types import Dataset as DatasetProtocol
from roadworthy.datasets import CIFAR10, Arrays, Food101, ImageFolder, TorchData, as_dataset, first

SIZES = (1, 3, 7, 100)


def ramp(n: int, c: int = 1, h: int = 2, w: int = 2) -> np.ndarray:
    """Distinct images: image i is constant i/n."""
    return np.broadcast_to(np.arange(n, dtype=np.float32).reshape(n, 1, 1, 1) / n, (n, c, h, w)).copy()


def collected(data: DatasetProtocol, size: int) -> Batch:
    parts = list(data.batches(size))
    assert [len(batch) for batch in parts[:-1]] == [size] * (len(parts) - 1), "only the last batch may be short"
    assert 1 <= len(parts[-1]) <= size
    return Batch(
        torch.cat([batch.ids for batch in parts]),
        torch.cat([batch.images for batch in parts]),
        torch.cat([batch.labels for batch in parts]),
    )


def save(path: Path, color: tuple[int, ...] | int, size: tuple[int, int] = (4, 4), mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, color).save(path)


# Arrays


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("wrap", [np.asarray, torch.from_numpy])
def test_arrays_stream_the_given_images_labels_and_ids_in_order(wrap: Any, size: int) -> None:
    images, labels, ids = ramp(10), np.arange(10) % 3, np.arange(10) * 5 + 2
    data = Arrays(wrap(images), wrap(labels), wrap(ids), classes=("a", "b", "c"))
    batch = collected(data, size)
    assert len(data) == 10
    assert data.classes == ("a", "b", "c")
    assert batch.ids.tolist() == data.ids.tolist() == ids.tolist()
    assert batch.labels.tolist() == labels.tolist()
    assert batch.images.dtype == torch.float32
    assert np.array_equal(batch.images.numpy(), images)


def test_arrays_without_labels_are_unlabeled_and_without_ids_are_numbered() -> None:
    batch = collected(Arrays(ramp(4)), 3)
    assert batch.labels.tolist() == [UNLABELED] * 4
    assert batch.labels.dtype == batch.ids.dtype == torch.int64
    assert batch.ids.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ">f4"])
def test_arrays_convert_other_floats_to_float32(dtype: Any) -> None:
    # Quarters are exact in every one of these types.
    batch = collected(Arrays(ramp(4).astype(dtype)), 4)
    assert batch.images.dtype == torch.float32
    assert batch.images[:, 0, 0, 0].tolist() == [0, 0.25, 0.5, 0.75]


def test_arrays_accept_read_only_reversed_and_gradient_carrying_images() -> None:
    images = ramp(4)
    images.flags.writeable = False
    assert collected(Arrays(images[::-1]), 3).images[:, 0, 0, 0].tolist() == [0.75, 0.5, 0.25, 0]
    assert not collected(Arrays(torch.from_numpy(ramp(4)).requires_grad_()), 4).images.requires_grad


@pytest.mark.parametrize("wrap", [np.asarray, torch.from_numpy])
def test_writing_into_a_batch_affects_neither_the_callers_arrays_nor_the_next_pass(wrap: Any) -> None:
    images, labels, ids = ramp(4), np.arange(4), np.arange(4)
    data = Arrays(wrap(images), wrap(labels), wrap(ids))
    for batch in data.batches(4):
        batch.images.fill_(9)
        batch.labels.fill_(9)
        batch.ids.fill_(9)
    again = collected(data, 4)
    assert np.array_equal(images, ramp(4))
    assert labels.tolist() == ids.tolist() == [0, 1, 2, 3]
    assert np.array_equal(again.images.numpy(), images)
    assert again.labels.tolist() == again.ids.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (np.zeros((2, 3, 8, 8), np.int64), RangeError, r"images are int64.*divide by 255 first"),
        (torch.zeros(2, 3, 8, 8, dtype=torch.int32), RangeError, r"images are int32.*divide by 255 first"),
        (np.zeros((2, 3, 8, 8), complex), ShapeError, r"complex128"),
        (np.zeros((2, 32, 32, 3), np.float32), ShapeError, r"\(2, 32, 32, 3\).*permute"),
        (np.zeros((3, 8, 8), np.float32), ShapeError, r"\(3, 8, 8\).*images\[None\]"),
        (np.zeros((0, 3, 8, 8), np.float32), ShapeError, r"at least one image"),
        ([[0.0]], InputError, r"images are a list"),
    ],
)
def test_invalid_image_arrays_are_errors(images: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Arrays(images)


def test_many_channels_on_a_tiny_grid_are_not_mistaken_for_channels_last() -> None:
    assert len(Arrays(np.zeros((2, 16, 4, 4), np.float32))) == 2


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-2.0, r"image 3 spans \[-2, 0\.6.*wrap the model, rw\.Normalized\(model, mean, std\)"),
        (255.0, r"image 3 spans \[0\.6.*, 255\].*divide by 255"),
        (1.0001, r"image 3 spans .*clip\(0, 1\)"),
        (np.nan, r"image 3 holds NaN or infinity"),
        (-np.inf, r"image 3 holds NaN or infinity"),
    ],
)
def test_a_pixel_out_of_range_is_an_error_with_image_and_advice(value: float, message: str) -> None:
    images = ramp(5)
    images[3, 0, 1, 1] = value  # image 3 is 0.6 elsewhere
    with pytest.raises(RangeError, match=message):
        Arrays(images)


def test_the_first_invalid_image_is_named_by_its_position_in_the_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roadworthy.datasets.arrays._CHUNK", 8)  # two images of four pixels at a time
    images = ramp(9)
    images[[5, 7]] = 2
    with pytest.raises(RangeError, match="image 5 "):
        Arrays(images)


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0, 1], ShapeError, r"labels have shape \(2,\) for 3 images"),
        (np.eye(3, dtype=int), ShapeError, r"argmax"),
        ([0.0, 1.0, 2.0], ShapeError, r"labels are float64: give integers"),
        ([0, -1, 2], RangeError, r"label -1 of image 1"),
        ([0, 1, 2], RangeError, r"label 2 of image 2: labels are class indices 0 to 1"),
    ],
)
def test_invalid_labels_are_errors(labels: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Arrays(ramp(3), labels, classes=("a", "b"))


def test_repeated_ids_or_a_wrong_number_of_them_are_errors() -> None:
    with pytest.raises(InputError, match="id 4 is given 2 times"):
        Arrays(ramp(3), ids=[4, 5, 4])
    with pytest.raises(ShapeError, match="ids have shape"):
        Arrays(ramp(3), ids=[4, 5])


@pytest.mark.parametrize("data", [Arrays(ramp(3)), TorchData(DataLoader(TensorDataset(torch.zeros(3, 1, 2, 2))))])
def test_a_batch_size_of_zero_is_an_error(data: DatasetProtocol) -> None:
    for source in (data, first(data, 2)):
        with pytest.raises(RangeError, match="batch size 0"):
            next(iter(source.batches(0)))


# torch


class Items(Dataset[Any]):
    def __init__(self, items: list[Any]):
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter([])


@pytest.mark.parametrize("size", SIZES)
def test_torch_data_of_pairs_streams_them_with_positions_as_ids(size: int) -> None:
    images = torch.from_numpy(ramp(10))
    labels = [3, np.int64(1), torch.tensor(2), *range(7)]  # every kind of integer is accepted
    batch = collected(TorchData(Items(list(zip(images, labels, strict=True)))), size)
    assert batch.ids.tolist() == list(range(10))
    assert batch.labels.tolist() == [3, 1, 2, 0, 1, 2, 3, 4, 5, 6]
    assert torch.equal(batch.images, images)


def test_torch_data_of_images_alone_is_unlabeled() -> None:
    images = torch.from_numpy(ramp(3))
    for data in (Items(list(images)), TensorDataset(images), DataLoader(TensorDataset(images)), DataLoader(images)):
        batch = collected(TorchData(data), 2)
        assert batch.labels.tolist() == [UNLABELED] * 3
        assert torch.equal(batch.images, images)


def test_torch_data_scales_pil_images_and_keeps_gray_ones_gray() -> None:
    color = collected(TorchData(Items([(Image.new("RGB", (3, 2), (255, 51, 0)), 1)])), 1)
    assert color.images.shape == (1, 3, 2, 3)
    # 255/255, 51/255 and 0/255
    assert color.images[0, :, 0, 0].tolist() == pytest.approx([1, 0.2, 0], abs=1e-7)
    assert collected(TorchData(Items([Image.new("L", (3, 2), 255)])), 1).images.shape == (1, 1, 2, 3)


def test_torch_data_has_the_class_names_of_the_torch_dataset() -> None:
    items = Items([(torch.zeros(1, 2, 2), 0)])
    items.classes = ["cat", "dog"]  # type: ignore[attr-defined]
    assert TorchData(items).classes == TorchData(DataLoader(items)).classes == ("cat", "dog")


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ([(torch.zeros(1, 2, 2), 0, 0)], InputError, "item 0 has 3 parts"),
        ([{"a": torch.zeros(1, 2, 2)}], InputError, "item 0 has the keys a: give one of image"),
        ([(torch.zeros(2, 2), 0)], ShapeError, r"item 0 has shape \(2, 2\)"),
        ([(torch.zeros(1, 2, 2), 0.5)], ShapeError, "item 0 has a label of type float"),
        ([(torch.zeros(1, 2, 2), 0), (torch.zeros(1, 2, 3), 0)], ShapeError, r"image 1 \(1, 2, 3\)"),
        ([(torch.zeros(1, 2, 2), 0), (torch.ones(1, 2, 2) * 2, 0)], RangeError, "image 1 spans"),
        ([(torch.zeros(1, 2, 2), 0), (torch.zeros(1, 2, 2), -3)], RangeError, "label -3 of image 1"),
        ([(torch.zeros(1, 2, 2, dtype=torch.int32), 0)], RangeError, "divide by 255"),
    ],
)
def test_torch_items_get_the_same_checks_as_arrays(items: list[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        collected(TorchData(Items(items)), 2)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("loader_size", [1, 4, 10])
def test_a_loader_is_rechunked_to_the_given_size(loader_size: int, size: int) -> None:
    images, labels = torch.from_numpy(ramp(10)), torch.arange(10)
    data = TorchData(DataLoader(TensorDataset(images, labels), batch_size=loader_size))
    batch = collected(data, size)
    assert len(data) == 10
    assert batch.ids.tolist() == data.ids.tolist() == batch.labels.tolist() == list(range(10))
    assert torch.equal(batch.images, images)


@pytest.mark.parametrize("size", [1, 2])
def test_images_of_two_shapes_are_an_error_at_every_batch_size(size: int) -> None:
    items = Items([torch.zeros(1, 2, 2), torch.zeros(1, 2, 3)])
    for data in (items, DataLoader(items, batch_size=1)):
        with pytest.raises(ShapeError, match=r"image 0 has shape \(1, 2, 2\), image 1 \(1, 2, 3\): resize"):
            list(TorchData(data).batches(size))


def test_the_length_of_a_loader_that_drops_its_last_batch_is_that_of_its_stream() -> None:
    data = TorchData(DataLoader(TensorDataset(torch.from_numpy(ramp(10))), batch_size=4, drop_last=True))
    assert len(data) == len(collected(data, 100)) == 8  # 10 = 4 + 4 + 2 dropped


def test_an_invalid_image_in_a_loader_is_named_by_its_position_in_the_stream() -> None:
    images = torch.from_numpy(ramp(6))
    images[4] = 2
    with pytest.raises(RangeError, match="image 4 "):
        collected(TorchData(DataLoader(TensorDataset(images), batch_size=2)), 6)


def test_reading_a_loader_leaves_the_global_generator_unchanged() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    collected(TorchData(DataLoader(TensorDataset(torch.from_numpy(ramp(4))))), 2)
    assert torch.equal(torch.rand(1), expected)


def test_a_loader_that_shuffles_is_an_error() -> None:
    items = TensorDataset(torch.from_numpy(ramp(4)))
    for loader in (
        DataLoader(items, shuffle=True),
        DataLoader(items, sampler=SubsetRandomSampler(range(3))),
        DataLoader(items, batch_sampler=BatchSampler(RandomSampler(items), 2, False)),
    ):
        with pytest.raises(InputError, match=r"shuffles.*shuffle=False"):
            TorchData(loader)


def test_a_loader_without_automatic_batching_is_an_error() -> None:
    with pytest.raises(InputError, match=r"loader\.dataset"):
        TorchData(DataLoader(TensorDataset(torch.from_numpy(ramp(4))), batch_size=None))


def test_a_stream_without_length_is_an_error_with_advice() -> None:
    for data in (Stream(), DataLoader(Stream())):
        with pytest.raises(InputError, match=r"Stream has no length.*map-style"):
            TorchData(data)


def test_an_empty_torch_dataset_is_an_error() -> None:
    with pytest.raises(ShapeError, match="contains no images"):
        TorchData(Items([]))


# CIFAR-10

NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def write_cifar(folder: Path, name: str, label_of: Any = lambda record: record % 10) -> Path:
    """An official file of 10 000 records; all pixels 0 but red (0, 1) = 255 and blue (31, 31) = 51."""
    records = np.zeros((10_000, 3073), np.uint8)
    records[:, 0] = [label_of(record) for record in range(10_000)]
    records[:, 1 + 1] = 255  # after the label: row 0, column 1 of the red plane
    records[:, 1 + 2 * 1024 + 31 * 32 + 31] = 51  # the last byte: row 31, column 31 of the blue plane
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "batches.meta.txt").write_text("\n".join(NAMES) + "\n\n")
    records.tofile(folder / name)
    return folder / name


@pytest.fixture(scope="module")
def cifar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cifar")
    write_cifar(root / "cifar-10-batches-bin", "test_batch.bin")
    write_cifar(root / "cifar-10-batches-bin", "data_batch_2.bin", lambda _: 2)
    write_cifar(root / "cifar-10-batches-bin", "data_batch_4.bin", lambda _: 4)
    return root


def test_a_cifar_record_written_by_hand_is_read_back(cifar: Path) -> None:
    for root in (cifar, str(cifar / "cifar-10-batches-bin")):
        data = CIFAR10(root)
        batch = next(iter(data.batches(3)))
        expected = torch.zeros(3, 3, 32, 32)
        expected[:, 0, 0, 1], expected[:, 2, 31, 31] = 1.0, 0.2
        assert torch.allclose(batch.images, expected, atol=1e-7)
        assert batch.labels.tolist() == batch.ids.tolist() == [0, 1, 2]
        assert len(data) == 10_000
        assert data.classes == tuple(NAMES)


def test_cifar_train_batches_keep_their_official_ids_across_files(cifar: Path) -> None:
    data = CIFAR10(cifar, "train", train_batches=(2, 4))
    sizes, ids, labels = [], [], []
    for batch in data.batches(7000):
        sizes.append(len(batch))
        ids += batch.ids.tolist()
        labels += batch.labels.tolist()
    assert sizes == [7000, 7000, 6000]
    # data_batch_k starts at (k - 1) · 10 000
    assert ids == data.ids.tolist() == [*range(10_000, 20_000), *range(30_000, 40_000)]
    assert labels == [2] * 10_000 + [4] * 10_000


def test_a_missing_cifar_file_names_the_download_command(cifar: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"test_batch\.bin is missing.*roadworthy data download cifar10 --root"):
        CIFAR10(tmp_path)
    with pytest.raises(DataError, match=r"data_batch_1\.bin is missing.*train_batches=\(2, 4\)"):
        CIFAR10(cifar, "train")


def test_a_truncated_cifar_file_is_an_error(tmp_path: Path) -> None:
    path = write_cifar(tmp_path, "test_batch.bin")
    with path.open("r+b") as file:
        file.truncate(30_730_000 - 3073)  # whole records, but one too few
    with pytest.raises(DataError, match="truncated: 30726927 bytes, expected 30730000"):
        CIFAR10(tmp_path)


def test_a_cifar_label_byte_above_nine_is_an_error(tmp_path: Path) -> None:
    write_cifar(tmp_path, "test_batch.bin", lambda record: 77 if record == 12 else 9)
    with pytest.raises(DataError, match="record 12 has label 77"):
        list(CIFAR10(tmp_path).batches(10))


@pytest.mark.parametrize("numbers", [(), (0,), (6,), (1, 1)])
def test_invalid_train_batches_are_an_error(cifar: Path, numbers: tuple[int, ...]) -> None:
    with pytest.raises(RangeError, match="train_batches"):
        CIFAR10(cifar, "train", numbers)


def test_an_unknown_split_is_an_error(tmp_path: Path) -> None:
    for kind in (CIFAR10, Food101):
        with pytest.raises(InputError, match=r"split 'val'.*'train' and 'test'"):
            kind(tmp_path, "val")


def test_the_real_cifar_test_labels_begin_with_cat_ship_ship_airplane_frog(real_data: Path) -> None:
    data = CIFAR10(real_data)
    batch = next(iter(data.batches(5)))
    assert batch.labels.tolist() == [3, 8, 8, 0, 6]
    # The file begins 03 9e 9f: label 3, then the first two red pixels 158 and 159.
    assert (batch.images[0, 0, 0, :2] * 255).tolist() == pytest.approx([158, 159], abs=1e-4)
    counts = torch.bincount(torch.cat([batch.labels for batch in data.batches(1000)]))
    assert counts.tolist() == [1000] * 10  # the official test split is balanced


# Food-101


def write_food(root: Path, lines: list[str], classes: tuple[str, ...] = ("apple_pie", "sushi")) -> Path:
    (root / "food-101" / "meta").mkdir(parents=True)
    (root / "food-101" / "meta" / "classes.txt").write_text("\n".join(classes) + "\n")
    (root / "food-101" / "meta" / "test.txt").write_text("\n".join(lines) + "\n")
    return root / "food-101"


def test_food_reads_the_split_in_its_order_with_the_labels_of_classes_txt(tmp_path: Path) -> None:
    folder = write_food(tmp_path, ["sushi/7", "apple_pie/1", "sushi/3"])
    save(folder / "images/sushi/7.jpg", (255, 255, 255), (20, 10))
    save(folder / "images/apple_pie/1.jpg", (0, 0, 0), (10, 30))
    save(folder / "images/sushi/3.jpg", 255, (5, 7), "L")  # gray and upsampled
    for root in (tmp_path, folder):
        data = Food101(root, size=8)
        batch = collected(data, 2)
        assert batch.images.shape == (3, 3, 8, 8)
        assert batch.ids.tolist() == data.ids.tolist() == [0, 1, 2]
        assert batch.labels.tolist() == [1, 0, 1]
        # JPEG keeps flat black and white exact.
        assert [float(image.min()) for image in batch.images] == [1, 0, 1]
        assert [float(image.max()) for image in batch.images] == [1, 0, 1]


def test_images_are_resized_by_their_shorter_side_and_center_cropped(tmp_path: Path) -> None:
    # 16×4 in columns of four: red, green, blue, white. Half the size: 8×2 with columns of two; its center 2×2 are
    # columns 3 and 4, the last green and the first blue.
    colors = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)]
    pixels = np.repeat(np.array(colors, np.uint8), 4, axis=0)[None].repeat(4, axis=0)
    Image.fromarray(pixels).save(tmp_path / "stripes.png")
    (batch,) = ImageFolder(tmp_path, resize=2, crop=2).batches(1)
    # The antialiasing triangle of width 2 reaches one old pixel over the edge, with weights 1 3 3 1 of 8.
    green, blue = [0, 7 / 8, 1 / 8], [0, 1 / 8, 7 / 8]
    for row in range(2):
        assert batch.images[0, :, row, 0].tolist() == pytest.approx(green, abs=1.01 / 255)
        assert batch.images[0, :, row, 1].tolist() == pytest.approx(blue, abs=1.01 / 255)


@pytest.mark.parametrize("line", ["sushi/../../secret", "../sushi/7", "/etc/passwd", "sushi", "sushi/..", "sushi\\x/1"])
def test_food_entries_outside_the_images_folder_are_errors(tmp_path: Path, line: str) -> None:
    write_food(tmp_path, ["sushi/7", line])
    with pytest.raises(DataError, match=r"test\.txt, line 2: .*CLASS/ID"):
        Food101(tmp_path)


def test_a_food_class_that_is_not_in_classes_txt_is_an_error(tmp_path: Path) -> None:
    write_food(tmp_path, ["ramen/7"])
    with pytest.raises(DataError, match=r"class 'ramen' is not in classes\.txt"):
        Food101(tmp_path)


def test_a_missing_food_image_or_split_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"classes\.txt is missing.*roadworthy data download food101"):
        Food101(tmp_path)
    write_food(tmp_path, ["sushi/7"])
    with pytest.raises(DataError, match=r"train\.txt is missing"):
        Food101(tmp_path, "train")
    with pytest.raises(DataError, match=r"7\.jpg is missing"):
        next(iter(Food101(tmp_path).batches(1)))


def test_the_real_food_images_equal_those_decoded_by_pillow(real_data: Path) -> None:
    data = Food101(real_data)
    batch = next(iter(data.batches(2)))
    line = (real_data / "food-101/meta/test.txt").read_text().split()[1]
    with Image.open(real_data / f"food-101/images/{line}.jpg") as image:
        assert image.size == (64, 64)  # stored at the requested size: neither resized nor cropped
        expected = np.asarray(image.convert("RGB"))
    assert np.array_equal((batch.images[1] * 255).round().byte().permute(1, 2, 0).numpy(), expected)
    assert data.classes[batch.labels[1]] == line.split("/")[0]
    assert len(data) == 250 * len(data.classes)  # the official test split has 250 images per class


# Image folders


def test_an_image_folder_labels_images_by_sorted_subfolders(tmp_path: Path) -> None:
    save(tmp_path / "dog/b.PNG", (0, 0, 255))
    save(tmp_path / "dog/a.bmp", (0, 255, 0))
    save(tmp_path / "cat/z.webp", (255, 255, 255))
    (tmp_path / "cat/notes.txt").write_text("not an image")
    (tmp_path / ".cache").mkdir()
    data = ImageFolder(tmp_path)
    batch = collected(data, 2)
    assert data.classes == ("cat", "dog")
    assert batch.labels.tolist() == [0, 1, 1]
    assert batch.ids.tolist() == data.ids.tolist() == [0, 1, 2]
    assert batch.images[1:, :, 0, 0].tolist() == [[0, 1, 0], [0, 0, 1]]  # a.bmp, b.PNG


def test_given_classes_select_the_subfolders_and_their_labels(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        save(tmp_path / name / "x.png", (0, 0, 0))
    save(tmp_path / "c" / "y.png", (0, 0, 0))
    assert collected(ImageFolder(tmp_path, classes=("c", "a")), 5).labels.tolist() == [0, 0, 1]
    with pytest.raises(DataError, match=r"d is missing: classes= must name subfolders"):
        ImageFolder(tmp_path, classes=("a", "d"))
    with pytest.raises(DataError, match="leads out of"):
        ImageFolder(tmp_path / "a", classes=("../b",))


def test_images_in_a_flat_folder_are_unlabeled(tmp_path: Path) -> None:
    save(tmp_path / "b.png", (0, 0, 255))
    save(tmp_path / "a.png", (255, 0, 0))
    data = ImageFolder(tmp_path)
    batch = collected(data, 5)
    assert data.classes == ()
    assert batch.labels.tolist() == [UNLABELED] * 2
    assert batch.images[:, :, 0, 0].tolist() == [[1, 0, 0], [0, 0, 1]]


def test_a_missing_empty_or_mixed_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a folder"):
        ImageFolder(tmp_path / "nowhere")
    with pytest.raises(DataError, match="contains no images"):
        ImageFolder(tmp_path)
    save(tmp_path / "cat/a.png", 0)
    (tmp_path / "dog").mkdir()
    with pytest.raises(DataError, match="dog contains no images"):
        ImageFolder(tmp_path)
    save(tmp_path / "stray.png", 0)
    with pytest.raises(DataError, match=r"stray\.png is outside the class folders"):
        ImageFolder(tmp_path)


@pytest.mark.parametrize("size", [1, 2])
def test_images_of_different_sizes_must_be_cropped(tmp_path: Path, size: int) -> None:
    save(tmp_path / "a.png", 0, (6, 4))
    save(tmp_path / "b.png", 0, (5, 8))
    with pytest.raises(ShapeError, match=r"a\.png is 6×4 pixels, .*b\.png 5×8.*crop="):
        list(ImageFolder(tmp_path).batches(size))
    assert collected(ImageFolder(tmp_path, crop=4), size).images.shape == (2, 3, 4, 4)
    assert collected(ImageFolder(tmp_path, resize=3, crop=3), size).images.shape == (2, 3, 3, 3)
    with pytest.raises(ShapeError, match=r"a\.png: 6×4 pixels cannot be cropped to 5×5: give resize=5 too"):
        list(ImageFolder(tmp_path, crop=5).batches(size))


def test_a_crop_of_no_pixels_is_an_error(tmp_path: Path) -> None:
    save(tmp_path / "a.png", 0)
    with pytest.raises(RangeError, match="crop=0"):
        ImageFolder(tmp_path, crop=0)


def test_a_damaged_image_file_is_named(tmp_path: Path) -> None:
    save(tmp_path / "whole.png", (1, 2, 3), (64, 64))
    content = (tmp_path / "whole.png").read_bytes()
    for name, damaged in (("text", b"not an image"), ("cut", content[: len(content) // 2]), ("empty", b"")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "bad.png").write_bytes(damaged)
        with pytest.raises(DataError, match=r"bad\.png cannot be decoded"):
            list(ImageFolder(folder).batches(1))


@pytest.mark.parametrize("limit", [20, 10])  # Pillow warns above its limit and raises above twice the limit
def test_a_decompression_bomb_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    save(tmp_path / "bomb.png", 0, (5, 5))  # 25 pixels
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(DataError, match=r"bomb\.png is too large to decode safely"):
        list(ImageFolder(tmp_path).batches(1))


def test_an_image_with_sixteen_bits_is_an_error_rather_than_clipped(tmp_path: Path) -> None:
    Image.fromarray(np.full((4, 4), 40_000, np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(DataError, match=r"deep\.png.*8 bits"):
        list(ImageFolder(tmp_path).batches(1))


def test_a_palette_with_transparency_becomes_rgb(tmp_path: Path) -> None:
    image = Image.new("P", (2, 2), 1)
    image.putpalette([0, 0, 0, 255, 0, 0])
    image.save(tmp_path / "a.png", transparency=bytes([0, 128]))
    assert collected(ImageFolder(tmp_path), 1).images[0, :, 0, 0].tolist() == [1, 0, 0]


def test_links_out_of_the_folder_are_errors_and_links_inside_are_read(tmp_path: Path) -> None:
    save(tmp_path / "outside/secret.png", (9, 9, 9))
    save(tmp_path / "data/cat/a.png", (0, 0, 0))
    (tmp_path / "data/cat/b.png").symlink_to(tmp_path / "data/cat/a.png")
    assert len(ImageFolder(tmp_path / "data")) == 2
    (tmp_path / "data/cat/c.png").symlink_to(tmp_path / "outside/secret.png")
    with pytest.raises(DataError, match=r"c\.png leads out of"):
        ImageFolder(tmp_path / "data")
    (tmp_path / "data/cat/c.png").unlink()
    (tmp_path / "data/dog").symlink_to(tmp_path / "outside")
    with pytest.raises(DataError, match="dog leads out of"):
        ImageFolder(tmp_path / "data")


# first, as_dataset


@pytest.mark.parametrize("size", SIZES)
def test_first_keeps_ids_labels_and_order(size: int) -> None:
    data = Arrays(ramp(10), range(10), np.arange(10) + 100, classes=tuple("abcdefghij"))
    subset = first(data, 4)
    batch = collected(subset, size)
    assert len(subset) == 4
    assert subset.classes == data.classes
    assert batch.ids.tolist() == subset.ids.tolist() == [100, 101, 102, 103]
    assert batch.labels.tolist() == [0, 1, 2, 3]
    assert len(first(data, 99)) == len(collected(first(data, 99), size)) == 10


def test_first_reads_no_more_images_than_needed() -> None:
    class Watched(Items):
        def __getitem__(self, index: int) -> Any:
            seen.append(index)
            return super().__getitem__(index)

    seen: list[int] = []
    collected(first(Watched(list(torch.from_numpy(ramp(10)))), 3), 100)
    assert seen == [0, 1, 2]


def test_first_of_no_images_is_an_error() -> None:
    with pytest.raises(RangeError, match="first 0 images"):
        first(ramp(3), 0)


def test_as_dataset_accepts_arrays_torch_datasets_and_loaders() -> None:
    images, labels = torch.from_numpy(ramp(4)), torch.arange(4)
    dataset = Arrays(images, labels)
    assert as_dataset(dataset) is dataset
    for data in (
        (images, labels),
        [images.numpy(), labels.numpy()],
        TensorDataset(images, labels),
        DataLoader(TensorDataset(images, labels)),
    ):
        batch = collected(as_dataset(data), 3)
        assert torch.equal(batch.images, images)
        assert torch.equal(batch.labels, labels)
    assert collected(as_dataset(images), 3).labels.tolist() == [UNLABELED] * 4


@pytest.mark.parametrize(
    ("data", "message"), [("photos/", "data is a str"), ((1, 2, 3), "tuple of 3"), (None, "NoneType")]
)
def test_as_dataset_lists_what_it_accepts(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=rf"{message}.*\(images, labels\).*torch Dataset.*DataLoader"):
        as_dataset(data)


def test_every_dataset_implements_the_protocol(cifar: Path, tmp_path: Path) -> None:
    folder = write_food(tmp_path, ["sushi/7"])
    save(folder / "images/sushi/7.jpg", 0)
    for data in (
        Arrays(ramp(2)),
        TorchData(TensorDataset(torch.from_numpy(ramp(2)))),
        CIFAR10(cifar),
        Food101(tmp_path),
        ImageFolder(folder / "images"),
        first(ramp(2), 1),
    ):
        assert isinstance(data, DatasetProtocol)
        assert as_dataset(data) is data
        assert len(data.ids) == len(data)
