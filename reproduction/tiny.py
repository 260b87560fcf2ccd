"""A reproduction in miniature: made-up images, the committed plans with tiny networks; nothing can be concluded."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image
from safetensors.torch import save_file

from reproduction.stages import STAGES
from reproduction.tables import PLANS
from roadworthy.experiments.build import build_untrained
from roadworthy.experiments.plans import read_plan
from roadworthy.models.loading import bare

IMAGES, TRAIN = 20, 16
SMALLER = {
    r"^images = \d+": f"images = {IMAGES}",
    r"^(split = \"test\"\nsize = )64": rf"\g<1>16\nimages = {IMAGES}",
    r"^\[train\].*\n": f"[train]\nimages = {TRAIN}\n",
    r"^width = \d+": "width = 2",
    r"^depth = \d+": "depth = 8",
    r"^epochs = \d+": "epochs = 1",
    r"^batch_size = \d+": "batch_size = 8",
    r"\bsteps = \d+": "steps = 1",
    r"_samples = \d+": "_samples = 2",
    r"^fractions = .*": "fractions = [0.3, 0.7]",
    r"^controls = \[\"random.*": 'controls = ["random", "edges", "center"]',
    r"^copied = .*\n": "",
}
"""pattern in a plan, line by line, to what replaces it"""


def smaller(text: str) -> str:
    """The text of a plan with everything that costs time made small."""
    for pattern, replacement in SMALLER.items():
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    name = re.search(r'^name = "(\w+)"', text, re.MULTILINE)
    size = ", size = 16" if name and name[1] == "food101" else ""
    data = f'data = {{ name = "{name[1] if name else ""}", root = "../data", split = "train", images = {TRAIN}{size} }}'
    return re.sub(r"^\[training\].*\n", f"[training]\n{data}\n", text, flags=re.MULTILINE)


def prepare(base: Path) -> None:
    """Plans, made-up data and, for the model that is not trained here, random weights."""
    (base / "plans").mkdir(parents=True, exist_ok=True)
    for stage in STAGES:
        text = smaller((PLANS / f"{stage.plan}.toml").read_text(encoding="utf-8"))
        (base / "plans" / f"{stage.plan}.toml").write_text(text, encoding="utf-8")
    code = (PLANS / "processed.py").read_text(encoding="utf-8")
    (base / "plans" / "processed.py").write_text(code, encoding="utf-8")
    _cifar10(base / "data" / "cifar-10-batches-bin")
    _food101(base / "data" / "food-101")
    weights = base / "data" / "weights" / "resnet20_cifar10.safetensors"
    weights.parent.mkdir(exist_ok=True)
    if not weights.exists():
        model = build_untrained(read_plan(base / "plans" / "cifar10-tables-resnet20.toml"))
        save_file({name: tensor.contiguous() for name, tensor in bare(model).state_dict().items()}, weights)


def _pictures(count: int, side: int, seed: int) -> Iterator[np.ndarray]:
    """Smooth random pictures `(side, side, 3)`."""
    draws = np.random.default_rng(seed)
    for _ in range(count):
        small = Image.fromarray(draws.integers(0, 256, (4, 4, 3), dtype=np.uint8))
        yield np.asarray(small.resize((side, side), Image.Resampling.BILINEAR))


def _cifar10(folder: Path) -> None:
    """The official files; all images but the first ones are black."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "batches.meta.txt").write_text("\n".join(f"class{label}" for label in range(10)), encoding="utf-8")
    for number, name in enumerate(("test_batch", *(f"data_batch_{k}" for k in range(1, 6)))):
        path = folder / f"{name}.bin"
        with path.open("wb") as file:
            for label, picture in enumerate(_pictures(2 * TRAIN, 32, number)):
                file.write(bytes([label % 10]) + picture.transpose(2, 0, 1).tobytes())
            file.truncate(10_000 * 3073)  # sparse


def _food101(folder: Path) -> None:
    names = [f"food{label}" for label in range(10)]
    (folder / "meta").mkdir(parents=True, exist_ok=True)
    (folder / "meta" / "classes.txt").write_text("\n".join(names), encoding="utf-8")
    for seed, (split, count) in enumerate((("train", TRAIN), ("test", IMAGES))):
        lines = []
        for number, picture in enumerate(_pictures(count, 24, 100 + seed)):
            name = names[number % 10]
            (folder / "images" / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(folder / "images" / name / f"{split}{number}.jpg")
            lines.append(f"{name}/{split}{number}")
        (folder / "meta" / f"{split}.txt").write_text("\n".join(lines), encoding="utf-8")
