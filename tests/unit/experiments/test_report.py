"""The report of a comparison: what it says about model, data and examples."""

import re

import roadworthy as rw
import worlds


def test_examples_without_labels_show_the_predicted_class(tmp_path):
    world = worlds.quadrants(n=8)
    options = {"fractions": (0.4,), "controls": (), "progress": False}
    comparison = rw.compare(world.model, world.images, {"t": world.truth}, **options)
    page = comparison.report(tmp_path / "page.html").read_text()
    assert "Image 0, predicted 0" in page
    assert "Image 0, class 0" not in page
    assert "that the model gets right" not in page
    named = rw.compare(world.model, (world.images, world.labels), {"t": world.truth}, **options)
    assert "Image 2, class 2" in named.report(tmp_path / "named.html").read_text()


def test_the_report_names_model_data_version_and_date_and_shows_the_maps_of_leading_methods(tmp_path):
    world = worlds.quadrants(n=24)
    maps = {"truth": world.truth, "half": world.truth + 0.3 * world.images.mean(dim=1), "none": -world.truth}
    comparison = rw.compare(world.model, (world.images, world.labels), maps, fractions=(0.2, 0.5), progress=False)
    page = comparison.report(tmp_path / "page.html").read_text()
    assert "<strong>Quadrants</strong> on <strong>Arrays</strong>" in page
    assert re.search(r"images: 24 · \d+ \w+ 20\d\d", page)
    assert f"<dt>Roadworthy</dt><dd>{rw.__version__}</dd>" in page
    assert all(f"<figcaption>{name}</figcaption>" in page for name in maps)
    leader = comparison.leaders()[0]
    for order in ("most relevant first (MoRF)", "least relevant first (LeRF)"):
        assert f"Imputed with linear; {leader} removes {order}" in page
