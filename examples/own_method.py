"""Rank your own method against Integrated Gradients, on the demo's digits.

python examples/own_method.py
"""

import roadworthy as rw
from roadworthy.experiments.demo import digits_demo


def darkness(model, batch, key):
    """An uninformative method: where the image is dark. Any function (model, batch, key) -> maps is a method."""
    return 1 - batch.images.mean(dim=1)


def main(images: int = 100) -> rw.Comparison:
    demo = digits_demo(images)
    comparison = rw.compare(
        demo.model,
        demo.data,
        {"IG": rw.attributions.IntegratedGradients(steps=8), "darkness": darkness},
        fractions=(0.1, 0.3, 0.5, 0.7, 0.9),
    )
    print(comparison)
    return comparison


if __name__ == "__main__":
    main()
