"""What a user has on disk: images in folders, a model, a plan."""

from textwrap import dedent

from PIL import Image

QUADRANTS = ("1 north-west", "2 north-east", "3 south-west", "4 south-east")
"""Names of the classes of `worlds.quadrants`; image folders number them in alphabetical order."""

QUADRANTS_MODEL = """
from torch import nn

class Quadrants(nn.Module):
    def forward(self, images):
        return 40 * nn.functional.adaptive_avg_pool2d(images.mean(dim=1, keepdim=True), 2).flatten(1)
"""
"""`worlds.Quadrants` in a file of its own, for processes that do not have the tests on their path."""


def save_images(folder, world, classes, rows=None):
    """The images of a world as PNG files, in a folder per class."""
    for row in range(len(world.images)) if rows is None else rows:
        target = folder / classes[int(world.labels[row])]
        target.mkdir(parents=True, exist_ok=True)
        image = world.images[row].expand(3, -1, -1).permute(1, 2, 0)
        Image.fromarray((image * 255).byte().numpy()).save(target / f"{row:03}.png")


def write(path, text):
    """Write code or a plan; returns the path."""
    path.write_text(dedent(text).lstrip("\n"))
    return path


def edited(path, name, **changes):
    """A copy of a plan beside it, with some of its text replaced; returns its name.

    `changes`: a key of the plan to the value that it gets, in TOML.
    """
    lines = path.read_text().splitlines()
    for key, value in changes.items():
        places = [number for number, line in enumerate(lines) if line.startswith(f"{key} =")]
        assert len(places) == 1, f"{path} has {len(places)} lines with {key}"
        lines[places[0]] = f"{key} = {value}"
    path.with_name(name).write_text("\n".join(lines) + "\n")
    return name
