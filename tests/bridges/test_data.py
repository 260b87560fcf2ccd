"""Data of Hugging Face and torchvision, as their own loaders give it."""

import numpy as np
import pytest
import torch
from PIL import Image

import roadworthy as rw
from libraries import library
from roadworthy.datasets import as_dataset
from roadworthy.datasets.subsets import picked

datasets, torchvision = library("datasets"), library("torchvision")
BYTES = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)
PIXELS = torch.from_numpy(BYTES).permute(0, 3, 1, 2) / 255


def hugging_face(**columns):
    features = {"img": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    features |= {name: datasets.ClassLabel(names=["a", "b"]) for name in columns}
    table = {"img": [Image.fromarray(image) for image in BYTES], "label": [0, 1, 1, 0, 1], **columns}
    return datasets.Dataset.from_dict(table, features=datasets.Features(features))


@pytest.mark.parametrize("kind", [None, "torch"])
def test_a_hugging_face_dataset_has_images_labels_and_class_names(kind):
    data = as_dataset(hugging_face().with_format(kind))
    assert isinstance(data, rw.datasets.HuggingFace)
    assert data.classes == ("cat", "dog")
    batches = list(data.batches(2))
    assert torch.equal(torch.cat([batch.images for batch in batches]), PIXELS)
    assert torch.cat([batch.labels for batch in batches]).tolist() == [0, 1, 1, 0, 1]
    (batch,) = picked(data, [0, 3]).batches(2)
    assert batch.ids.tolist() == [0, 3]
    assert torch.equal(batch.images, PIXELS[[0, 3]])


def test_two_columns_of_labels_are_ambiguous():
    data = hugging_face(coarse=[0, 0, 0, 0, 1])
    with pytest.raises(
        rw.errors.InputError, match=r'label, coarse could be the label.*HuggingFace\(data, label="label"\)'
    ):
        as_dataset(data)
    assert next(rw.datasets.HuggingFace(data, label="coarse").batches(5)).labels.tolist() == [0, 0, 0, 0, 1]


def test_splits_and_streams_are_refused_with_the_cure():
    with pytest.raises(rw.errors.InputError, match=r"choose one, data\['test'\]"):
        as_dataset(datasets.DatasetDict(test=hugging_face()))
    with pytest.raises(rw.errors.InputError, match="streaming=True"):
        as_dataset(hugging_face().to_iterable_dataset())
    with pytest.raises(rw.errors.InputError, match=r"transform.*with_format\(None\)"):
        as_dataset(hugging_face().with_transform(lambda rows: {"pixel_values": rows["img"]}))
    with pytest.raises(rw.errors.InputError, match="no column 'image': the data set has img, label"):
        rw.datasets.HuggingFace(hugging_face(), image="image")


@pytest.fixture
def folder(tmp_path):
    for number, image in enumerate(BYTES):
        path = tmp_path / ("cat" if number % 2 else "dog") / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(image).save(path)
    return tmp_path


def test_an_image_folder_of_torchvision_works_with_every_transform_to_pixels(folder):
    v2 = library("torchvision.transforms.v2")
    expected = PIXELS[[1, 3, 0, 2, 4]]  # cat: 1, 3; dog: 0, 2, 4
    for transform in (
        None,
        torchvision.transforms.ToTensor(),
        torchvision.transforms.PILToTensor(),
        v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]),
    ):
        data = as_dataset(torchvision.datasets.ImageFolder(folder, transform))
        (batch,) = data.batches(5)
        assert data.classes == ("cat", "dog")
        assert torch.allclose(batch.images, expected, atol=1e-7)  # v2 multiplies by 1/255
        assert batch.labels.tolist() == [0, 0, 1, 1, 1]


def test_a_transform_that_normalizes_is_refused_with_the_cure(folder):
    compose, normalize = torchvision.transforms.Compose, torchvision.transforms.Normalize([0.5] * 3, [0.2] * 3)
    data = as_dataset(torchvision.datasets.ImageFolder(folder, compose([torchvision.transforms.ToTensor(), normalize])))
    with pytest.raises(rw.errors.RangeError, match="leave Normalize out"):
        list(data.batches(5))
