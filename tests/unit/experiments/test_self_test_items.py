"""Which images give their maps to which, and on which blocks the rest is measured."""

import pytest

from roadworthy.experiments.items import Block
from roadworthy.experiments.self_test.design import donated, spaced


def blocks(*sizes):
    start, found = 0, []
    for index, size in enumerate(sizes):
        found.append(Block("test", index, tuple(range(start, start + size)), ""))
        start += size
    return found


def donors(parts):
    """Image to the image whose map it takes."""
    return {
        row: donor
        for block in parts
        for row, donor in zip(
            block.rows,
            [row for other, start, stop in donated(parts, block) for row in other.rows[start:stop]],
            strict=True,
        )
    }


@pytest.mark.parametrize("sizes", [(2,), (1, 1), (3, 1), (10,), (64, 64, 1), (5, 3, 7, 2)])
def test_every_image_takes_the_map_of_another_one_and_every_map_is_taken_once(sizes):
    found = donors(blocks(*sizes))
    assert sorted(found) == sorted(found.values()) == list(range(sum(sizes)))
    assert all(row != donor for row, donor in found.items())


def test_who_gives_to_whom_does_not_depend_on_the_size_of_blocks():
    assert donors(blocks(30)) == donors(blocks(7, 20, 3)) == donors(blocks(*[1] * 30))


def test_a_block_needs_few_others():
    parts = blocks(*[64] * 50)
    assert max(len(list(donated(parts, block))) for block in parts) <= 3


def test_a_sample_is_spread_over_all_blocks():
    parts = blocks(*[64] * 10)
    assert [block.index for block in spaced(parts, 130)] == [0, 3, 6]
    assert [block.index for block in spaced(parts, 60)] == [0]
    assert spaced(parts, 10_000) == tuple(parts)
    assert spaced(parts[:1], 10_000) == tuple(parts[:1])
