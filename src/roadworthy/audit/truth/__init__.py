"""Worlds whose evidence is known exactly: models, images, and maps with a true order (docs/benchmark-of-benchmarks.md).

Every image is a background and something that is planted in whole cells of it. The background is a gray, tilted plane
with slight noise. Every model is multilinear in what is planted, and so simple that its evidence can be written down.

**Ideal removal** of a pixel redraws what is planted there, independently of everything else, and keeps the background.
It is what imputation tries to do: take the information of a pixel away and leave an image of the same kind. Here it is
known exactly: as a multilinear function of independent values has the mean that it has at their means, the mean margin
after ideal removal is the margin of the image whose removed pixels show the background and the mean of what is planted.
A model's margin is the logit of the label minus the mean of the other logits.

**The true quality** of a map is its LeRF area minus its MoRF area, of the margin after ideal removal. From it follows:

- A constant map, whose ties are broken at random, has quality 0, and so has any map that knows nothing about what is
  planted where all places are alike: MoRF and LeRF then remove sets with the same distribution.
- An inverted map exchanges the two curves, so its quality is the negative of that of the map.
- Where the margin is a sum of contributions of pixels (all worlds but `gate`), the quality is proportional to the sum
  over pairs of pixels of the difference of their contributions, counted positive if the larger one comes first in MoRF
  and negative otherwise. So no map is better than the exact contributions. Normal noise of standard deviation s puts
  the larger of two contributions that differ by d first with probability Φ(d/(s√2)), which falls as s grows: more noise
  is worse, and no amount makes a map worse than a constant one.

Blurred copies are worse than exact ones; by how much depends on the world. The places of `blurred`, and of the map that
misleads in each world, are those of `World.quality`; tests compute it for thousands of images.
"""

from collections.abc import Callable, Mapping

from roadworthy.audit.truth.absence import absence
from roadworthy.audit.truth.additive import additive
from roadworthy.audit.truth.distractor import distractor, shortcut
from roadworthy.audit.truth.gate import gate
from roadworthy.audit.truth.world import IdealRemoval, KnownMaps, World

WORLDS: Mapping[str, Callable[..., World]] = {
    "additive": additive,
    "distractor": distractor,
    "shortcut": shortcut,
    "gate": gate,
    "absence": absence,
}
"""name to `make(seed, images, train)`"""

__all__ = [
    "WORLDS",
    "IdealRemoval",
    "KnownMaps",
    "World",
    "absence",
    "additive",
    "distractor",
    "gate",
    "shortcut",
]
