"""What people have: bytes, lists of PIL images, labels that are names, items that are dicts."""

import numpy as np
import pytest
import torch
from PIL import Image

import roadworthy as rw
from roadworthy.datasets import as_dataset
from roadworthy.datasets.subsets import picked

BYTES = np.random.default_rng(0).integers(0, 256, (5, 3, 8, 6), dtype=np.uint8)
PICTURES = [Image.fromarray(image.transpose(1, 2, 0)) for image in BYTES]
PIXELS = torch.from_numpy(BYTES / np.float32(255))
NAMES = ("cat", "dog", "eel")
LABELS = ["dog", "cat", "dog", "eel", "cat"]


class Items(torch.utils.data.Dataset):
    def __init__(self, items, classes=()):
        self.items, self.classes = items, classes

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def images_of(data, size=2):
    return torch.cat([batch.images for batch in as_dataset(data).batches(size)])


def labels_of(data):
    return torch.cat([batch.labels for batch in data.batches(2)]).tolist()


@pytest.mark.parametrize(
    "data",
    [BYTES, torch.from_numpy(BYTES), (BYTES, [0, 1, 0, 1, 0]), PICTURES, (PICTURES, [0, 1, 0, 1, 0]), list(BYTES),
     Items(list(torch.from_numpy(BYTES))), Items([{"image": image, "label": 1} for image in PICTURES]),
     Items([{"pixel_values": image} for image in torch.from_numpy(BYTES)])],
    ids=["uint8", "uint8 tensor", "uint8 with labels", "PIL", "PIL with labels", "list of arrays", "torch uint8",
         "dicts", "dicts of tensors"],
)  # fmt: skip
def test_bytes_and_pictures_are_divided_by_255(data):
    assert torch.equal(images_of(data), PIXELS)


def test_gray_pictures_stay_gray_and_rows_are_read_alone():
    gray = [Image.fromarray(image[0]) for image in BYTES]
    data = as_dataset((gray, LABELS), classes=NAMES)
    assert torch.equal(images_of(data), PIXELS[:, :1])
    (batch,) = picked(data, [1, 4]).batches(2)
    assert batch.ids.tolist() == [1, 4]
    assert batch.labels.tolist() == [0, 0]
    assert torch.equal(batch.images, PIXELS[[1, 4], :1])


def test_pictures_of_several_sizes_are_resized_and_cropped_on_request():
    several = [Image.new("RGB", (12, 20), (255, 0, 51)), Image.new("RGB", (30, 16), (255, 0, 51))]
    with pytest.raises(rw.errors.ShapeError, match=r"resize= and crop= of rw\.datasets\.Pictures"):
        images_of(several)
    images = images_of(rw.datasets.Pictures(several, resize=8, crop=8))
    assert images.shape == (2, 3, 8, 8)
    assert torch.allclose(images[:, :, 4, 4], torch.tensor([1, 0, 0.2]))


@pytest.mark.parametrize(
    "data",
    [(BYTES, LABELS), (BYTES, np.array(LABELS)), (PICTURES, LABELS),
     Items(list(zip(torch.from_numpy(BYTES), LABELS, strict=True)))],
    ids=["list", "numpy", "PIL", "torch"],
)  # fmt: skip
def test_labels_may_be_names_if_the_order_of_the_classes_is_known(data):
    assert labels_of(as_dataset(data, classes=NAMES)) == [1, 0, 1, 2, 0]
    with pytest.raises(rw.errors.InputError, match=r"names, such as 'dog'.*classes=names_in_the_order_of_the_outputs"):
        labels_of(as_dataset(data))
    with pytest.raises(rw.errors.InputError, match=r"'eel' is not one of the 2 classes"):
        labels_of(as_dataset(data, classes=NAMES[:2]))


def test_integers_in_a_column_of_objects_are_integers():
    assert labels_of(as_dataset((BYTES, np.array([2, 0, 1, 0, 1], dtype=object)))) == [2, 0, 1, 0, 1]


def test_the_names_of_a_dataset_go_before_those_of_the_model():
    data = as_dataset(Items([(image, "dog") for image in torch.from_numpy(BYTES)], classes=["dog", "cat"]), NAMES)
    assert labels_of(data) == [0] * 5


def test_normalized_images_are_refused_with_the_cure():
    with pytest.raises(rw.errors.RangeError, match=r"leave Normalize out of the transforms.*rw\.Normalized.*once"):
        as_dataset((PIXELS - 0.5) / 0.25)


def test_a_dict_with_two_images_is_ambiguous():
    with pytest.raises(rw.errors.InputError, match="image, pixel_values"):
        images_of(Items([{"image": PIXELS[0], "pixel_values": PIXELS[0]}]))


def test_one_label_per_picture():
    with pytest.raises(rw.errors.ShapeError, match="4 labels for 5 images"):
        as_dataset((PICTURES, LABELS[:4]), classes=NAMES)
