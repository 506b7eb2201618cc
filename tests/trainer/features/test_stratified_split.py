"""One routine draws what is held out of each class: of images by the rank of a hash, of rows by a seed."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from headsmith.trainer.features.images.carving import carve
from headsmith.trainer.features.images.samples import SPLITS, Sample
from headsmith.trainer.features.splitting import divide
from headsmith.trainer.features.stratified_split import stratified_split

# Of the splits that the version before drew, with a routine of its own for images and another one for rows.
BEFORE = {
    "images": "8b3dfb2cb51a125d",
    "images without val": "082af45f52c98183",
    "images with copies": "2ada2be93e066e29",
    "rows": "446547e7c1a0e62c",
    "rows of another seed": "c9ae9911f41840d5",
    "rows in groups": "985781d0763e5d96",
    "rows of few groups": "46a7634b3d736c71",
}


def image_splits(counts, missing, copies=0):
    """The split of every image, some of which share a picture with the next class."""
    samples = [
        Sample(f"{label}/{row}.png", label, "train") for label, count in enumerate(counts) for row in range(count)
    ]
    same = {one.id: f"picture {place % 7}" for place, one in enumerate(samples[:copies])}
    found = {one.id: one.split for one in carve(samples, [str(label) for label in range(len(counts))], missing, same)}
    return [SPLITS.index(found[one.id]) for one in samples]


def row_splits(counts, grouped, share, seed):
    """The split of every row; groups of three rows, some of them of two classes."""
    labels = np.repeat(np.arange(len(counts)), counts)
    groups = np.arange(len(labels)) // 3 if grouped else None
    names = [str(label) for label in range(len(counts))]
    return divide(np.zeros(len(labels), np.int8), labels, groups, names, share=share, seed=seed).splits.tolist()


CASES = {
    "images": lambda: image_splits((3, 14, 15, 16, 24, 25, 26, 120, 1000), ("val", "test")),
    "images without val": lambda: image_splits((2, 3, 5, 35, 95, 105, 3), ("val",)),
    "images with copies": lambda: image_splits((40, 30, 25, 3), ("val", "test"), copies=60),
    "rows": lambda: row_splits((1, 2, 3, 14, 15, 16, 25, 200), False, 0.1, 0),
    "rows of another seed": lambda: row_splits((5, 50, 500), False, 0.25, 17),
    "rows in groups": lambda: row_splits((10, 31, 50, 2, 44), True, 0.1, 3),
    "rows of few groups": lambda: row_splits((2, 2, 2, 2, 2, 2, 2, 2, 2, 2), True, 0.15, 0),
}


@pytest.mark.parametrize("case", CASES)
def test_no_split_changed(case):
    splits = CASES[case]()
    assert set(splits) >= {0, 1}
    assert hashlib.sha256(bytes(splits)).hexdigest()[:16] == BEFORE[case]


@given(some.lists(some.integers(0, 4), min_size=1, max_size=60), some.integers(1, 2), some.floats(0.01, 0.49))
def test_every_class_keeps_rows_and_gives_its_share_in_the_order_that_is_asked(strata, splits, share):
    labels = np.array(strata)
    order = np.random.default_rng(len(strata)).permutation(len(strata))
    drawn, small = stratified_split(labels, order, splits, share)
    for label in np.unique(labels):
        ranked = [drawn[place] for place in order if labels[place] == label]
        held_out = max(1, round(share * len(ranked)))
        if splits * held_out >= len(ranked):
            held_out = 0
        assert (label in small) == (held_out == 0)
        expected = [number for number in range(splits) for _ in range(held_out)]
        assert ranked == expected + [-1] * (len(ranked) - len(expected))
