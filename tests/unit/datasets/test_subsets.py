"""Some images of a data set, by their rows; and blocks of them."""

import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from roadworthy.core.errors import RangeError
from roadworthy.datasets import Arrays, ImageFolder, as_dataset, first
from roadworthy.datasets.blocks import BlockReader
from roadworthy.datasets.subsets import picked


@pytest.mark.parametrize("size", [1, 3, 100])
def test_picked_images_keep_ids_labels_and_order_streamed_or_not(size):
    images, labels, ids = torch.rand(10, 1, 4, 4), torch.arange(10), torch.arange(10) * 3
    direct, streamed = Arrays(images, labels, ids), as_dataset(TensorDataset(images, labels))
    for data, expected in ((direct, [3, 12, 24]), (first(direct, 9), [3, 12, 24]), (streamed, [1, 4, 8])):
        chosen = picked(data, [1, 4, 8])
        parts = list(chosen.batches(size))
        assert torch.cat([batch.ids for batch in parts]).tolist() == chosen.ids.tolist() == expected
        assert torch.equal(torch.cat([batch.images for batch in parts]), images[[1, 4, 8]])
        assert torch.cat([batch.labels for batch in parts]).tolist() == [1, 4, 8]
        assert max(len(batch) for batch in parts) <= size
    with pytest.raises(RangeError, match="from 0 to 9"):
        picked(direct, [3, 10])


def test_picked_image_files_are_the_only_ones_read(tmp_path):
    for number in range(6):
        Image.new("RGB", (4, 4), (number * 40, 0, 0)).save(tmp_path / f"{number}.png")
    data = ImageFolder(tmp_path)
    (tmp_path / "2.png").write_bytes(b"not an image")  # it would be an error to open this one
    (batch,) = picked(data, [1, 4]).batches(10)
    assert batch.ids.tolist() == [1, 4]
    assert torch.allclose(batch.images[:, 0, 0, 0], torch.tensor([40, 160]) / 255)


class Streamed:
    """A data set without random access that counts how often it is read from its start."""

    def __init__(self, count):
        self._arrays, self.passes = Arrays(torch.rand(count, 1, 2, 2), torch.zeros(count).long()), 0
        self.classes, self.ids = (), self._arrays.ids

    def __len__(self):
        return len(self.ids)

    def batches(self, size):
        self.passes += 1
        return self._arrays.batches(size)


BLOCKS = {
    "sequential": [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9)],
    "backwards": [(8, 9), (4, 5, 6, 7), (0, 1, 2, 3)],
    "again": [(0, 1, 2, 3), (0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 2, 3)],
    "scattered": [(1, 5, 9), (0, 2), (3, 4, 6, 7, 8)],
    "uneven": [(0, 1, 2), (3, 4), (5, 6, 7, 8, 9)],
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_are_read_in_any_order(name):
    data = Streamed(10)
    for source in (data, first(data, 10), data._arrays, first(data._arrays, 10)):
        reader = BlockReader(source)
        for rows in BLOCKS[name]:
            batch = reader.read(rows)
            assert batch.ids.tolist() == list(rows)
            assert torch.equal(batch.images, data._arrays.images[list(rows)])


def test_blocks_in_sequence_are_one_pass_over_a_stream():
    data = Streamed(10)
    reader = BlockReader(data)
    for rows in BLOCKS["sequential"]:
        reader.read(rows)
        reader.read(rows)
    assert data.passes == 1
