"""A copy is named beside the first image that shows the same: of the data set, or of its split."""

import numpy as np
import pyarrow as pa

from headsmith.trainer.features.copies import Shown, find_copies


def copies(**splits):
    """What is found where a letter is a picture."""

    def shown(split, pictures):
        ids = [f"{split}/{number}" for number in range(len(pictures))]
        return Shown(pa.array(ids), np.zeros(len(pictures), np.int64), pa.array(list(pictures)))

    return find_copies({split: shown(split, pictures) for split, pictures in splits.items()}, ["only"])


def test_a_copy_within_a_split_is_named_beside_an_image_of_that_split():
    found = copies(train="xy", val="axbx", test="bb")
    assert {split: one.first for split, one in found.within.items()} == {
        "val": [("val/3", "val/1")],
        "test": [("test/1", "test/0")],
    }
    assert {split: one.first for split, one in found.across.items()} == {
        "val": [("val/1", "train/0"), ("val/3", "train/0")],
        "test": [("test/0", "val/2"), ("test/1", "val/2")],
    }


def test_of_several_copies_all_are_named_beside_the_first():
    found = copies(train="aab", val="ccacab")
    assert found.within["val"].first == [("val/1", "val/0"), ("val/3", "val/0"), ("val/4", "val/2")]
