"""Average ranks over images, on small studies with known answers."""

from predictions import BAD, GOOD, study
from roadworthy.statistics import average_ranks


def test_ranks_are_averaged_over_images_and_equal_scores_share_their_mean():
    table = average_ranks(study(good=GOOD, bad=BAD, twin=GOOD))
    # Every image scores good and twin above bad (image 1: LeRF 1 − MoRF .75 against .75 − 1): they share ranks 1 and 2.
    assert table[["method", "average_rank"]].to_numpy().tolist() == [["good", 1.5], ["twin", 1.5], ["bad", 3.0]]
    assert table["score"].unique().tolist() == ["srg"]
    assert table["images"].tolist() == [4, 4, 4]


def test_two_methods_that_never_tie_have_ranks_one_and_two():
    never = {"morf": [[1] * 4, [0] * 4, [0] * 4], "lerf": [[1] * 4, [1] * 4, [1] * 4]}
    always = {"morf": [[1] * 4, [1] * 4, [1] * 4], "lerf": [[1] * 4, [0] * 4, [0] * 4]}
    table = average_ranks(study(always=always, never=never))
    assert table[["method", "average_rank"]].to_numpy().tolist() == [["never", 1.0], ["always", 2.0]]


def test_methods_that_do_not_take_part_change_no_rank():
    with_copy = average_ranks(study(good=GOOD, bad=BAD, copy=GOOD), without=["copy"])
    assert with_copy.equals(average_ranks(study(good=GOOD, bad=BAD)))


def test_low_areas_are_good_where_only_morf_was_evaluated():
    morf = {"good": {"morf": GOOD["morf"]}, "bad": {"morf": BAD["morf"]}}
    assert average_ranks(study(**morf))["method"].tolist() == ["good", "bad"]
