"""Leaks and classes that are missing, counted by Python's sets."""

import numpy as np
import pyarrow as pa

from headsmith.trainer.features.columns import Columns
from headsmith.trainer.features.inspection.split_coverage import shared_ids, unanswered


def columns(ids, labels):
    return Columns(pa.array(ids, pa.string()), np.array(labels, np.int64), np.zeros((len(ids), 1), np.float32))


def test_shared_ids():
    rng = np.random.default_rng(0)
    drawn = {
        split: rng.integers(2000, size=rows).astype(str) for split, rows in (("train", 500), ("val", 90), ("test", 70))
    }
    train, val, test = map(set, drawn.values())
    expected = sorted((train & val) | (train & test) | (val & test))
    assert expected
    found = {split: columns(ids, np.zeros(len(ids))) for split, ids in drawn.items()}
    assert shared_ids(found) == expected
    assert shared_ids({"train": found["train"]}) == []  # views of one image


def test_unanswered():
    found = unanswered(
        {
            "train": columns(["a", "b", "c"], [0, 2, 2]),
            "val": columns(["d", "e"], [0, 2]),
            "test": columns(["f", "g", "h", "i"], [1, 3, 1, 2]),
        },
        ["cat", "dog", "owl", "yak"],
    )
    assert list(found) == ["test"]
    assert str(found["test"]) == (
        "3 rows (75.00%) are of classes without a training row, which no head can answer: dog, yak"
    )
