"""What ships with the package besides code: data with their notices and licenses."""

import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent
ROOT = PROJECT / "src" / "roadworthy"
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text())


def data_files():
    return [path for path in ROOT.rglob("*") if path.suffix in (".png", ".csv", ".safetensors")]


def test_every_folder_with_data_has_a_notice_that_is_a_license_file_of_the_package():
    folders = {path.parent for path in data_files()}
    assert folders == {ROOT / "datasets" / "cifar10_sample", ROOT / "models" / "weights"}
    listed = {PROJECT / name for name in SETTINGS["project"]["license-files"]}
    assert {folder / "NOTICE" for folder in folders} <= listed
    assert all(path.is_file() for path in listed)
    for path in data_files():
        assert path.name in (path.parent / "NOTICE").read_text()


def test_the_license_of_the_weights_is_named_and_listed():
    text = (ROOT / "models" / "weights" / "LICENSE").read_text()
    assert "Yerlan Idelbayev" in text
    assert "Redistributions in binary form must reproduce" in text
    assert SETTINGS["project"]["license"] == "MIT AND BSD-2-Clause"
    assert "src/roadworthy/models/weights/LICENSE" in SETTINGS["project"]["license-files"]


def test_the_data_stay_small():
    assert sum(path.stat().st_size for path in data_files()) < 1_600_000
