"""Rows are divided class by class, groups stay together, and no operation parts a feature from its label and id."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from headsmith.core.coded_warnings import CodedWarning
from headsmith.core.errors import InputError
from headsmith.trainer import FeatureSet
from headsmith.trainer.features.images.samples import SPLITS
from headsmith.trainer.features.splitting import divide


def names(count):
    return [str(label) for label in range(count)]


def carve(labels, groups=None, given_splits=None, **options):
    labels = np.asarray(labels)
    given_splits = np.zeros(len(labels), np.int8) if given_splits is None else np.asarray(given_splits, np.int8)
    options = {"share": 0.1, "seed": 0} | options
    return divide(given_splits, labels, groups, names(labels.max() + 1), **options)


@settings(max_examples=40, deadline=None)
@given(
    labels=st.lists(st.integers(0, 4), min_size=30, max_size=120),
    share=st.floats(0.05, 0.3),
    seed=st.integers(0, 9),
    repeats=st.integers(1, 3),
    own=st.booleans(),
)
def test_features_labels_and_ids_stay_together(labels, share, seed, repeats, own):
    """The row's number is its feature, decides its label, and is its id, whatever is done to the rows."""
    labels = np.repeat([*range(5), *range(5), *range(5), *labels], repeats)
    numbers = np.arange(len(labels))
    features = np.stack([numbers, labels], 1).astype(np.float32)
    ids = np.char.add("image ", (numbers // repeats).astype(str))
    options = {"held_out_share": share, "seed": seed, "ids": ids}
    if own:
        cut = len(labels) // 2 // repeats * repeats
        halves = {key: {"train": value[:cut], "test": value[cut:]} for key, value in (("x", features), ("y", labels))}
        options["ids"] = {"train": ids[:cut], "test": ids[cut:]}
        found = FeatureSet.from_arrays(halves["x"], halves["y"], **options)
        assert sorted(found.arrays("test")[0][:, 0].tolist()) == list(range(cut, len(labels)))
    else:
        found = FeatureSet.from_arrays(features, labels, **options)
    seen = []
    for split in found.splits:
        rows, indices = found.arrays(split)
        assert [found.class_names[index] for index in indices] == [str(int(row)) for row in rows[:, 1]]
        assert found.ids(split) == [f"image {int(row) // repeats}" for row in rows[:, 0]]
        assert (np.diff(rows[:, 0].numpy()) > 0).all()  # the order of the source
        seen.append({int(row) // repeats for row in rows[:, 0]})
    assert sum(map(len, seen)) == len(set.union(*seen)) == len(labels) // repeats  # every image once, in one split


@settings(max_examples=40, deadline=None)
@given(
    groups=st.lists(st.integers(0, 12), min_size=60, max_size=200), seed=st.integers(0, 5), share=st.floats(0.05, 0.3)
)
def test_no_group_in_two_splits(groups, seed, share):
    groups = np.array([*groups, *range(13)])
    labels = np.random.default_rng(0).integers(0, 3, len(groups))
    found = carve(labels, groups, share=share, seed=seed)
    parts = [set(groups[found.splits == code]) for code in range(3)]
    assert sum(map(len, parts)) == 13
    assert all(parts)
    assert "no group in two splits" in found.rule


def test_every_class_gives_its_share_and_the_seed_decides_which_rows():
    labels = np.repeat([0, 1, 2], [100, 50, 3])
    found = carve(labels)
    for split in ("val", "test"):
        assert np.bincount(labels[found.splits == SPLITS.index(split)]).tolist() == [10, 5, 1]
    assert found.rule == "val and test carved from train: 10.00% of each class, at least 1, drawn with seed 0"
    assert (carve(labels).splits == found.splits).all()
    assert (carve(labels, seed=1).splits != found.splits).any()


def test_a_class_with_a_single_row_stays_in_train_and_that_is_recorded():
    labels = np.repeat([0, 1, 2], [20, 20, 1])
    found = carve(labels)
    assert found.splits[-1] == 0
    assert found.warnings == [
        CodedWarning("kept-in-train", "too few rows to carve: kept in train as a whole: class '2'")
    ]
    features = FeatureSet.from_arrays(np.eye(41), labels)
    assert features.manifest.warnings == found.warnings
    with pytest.raises(InputError, match="no class has enough rows .* to carve val out of train; add rows, or give"):
        FeatureSet.from_arrays(np.eye(4), [0, 0, 1, 1])


def test_a_group_of_two_classes_leaves_the_others_divided_by_class():
    """One repeated id: every class but for those rows gives its share, as scikit-learn's stratified folds do."""
    labels = np.arange(1500) % 50
    groups = np.arange(1500)
    groups[7] = groups[0]  # classes 0 and 7
    found = carve(labels, groups)
    splitter = StratifiedKFold(10)
    _, fold = next(splitter.split(labels, labels))
    for code in (1, 2):
        assert np.bincount(labels[found.splits == code]).tolist() == np.bincount(labels[fold]).tolist() == [3] * 50
    assert found.splits[7] == found.splits[0]
    assert "10.00% of each class, at least 1, drawn with seed 0, no group in two splits" in found.rule
    assert found.warnings == []


def test_many_groups_of_several_classes_give_their_share_too():
    labels = np.r_[np.arange(400) % 2, np.arange(400) % 3]
    groups = np.r_[np.arange(400), 400 + np.arange(400) // 4]  # single rows, and 100 groups of four rows each
    found = carve(labels, groups)
    for code in (1, 2):
        chosen = found.splits == code
        assert np.bincount(labels[:400][chosen[:400]]).tolist() == [20, 20]
        assert len(np.unique(groups[400:][chosen[400:]])) == 10
    assert "10.00% of each class and of the groups of several classes, at least 1" in found.rule


def test_an_id_with_two_classes_is_recorded():
    ids = [f"i{row}" for row in range(60)]
    ids[31] = "i0"
    found = FeatureSet.from_arrays(np.eye(60), np.arange(60) % 3, ids=ids)
    assert found.manifest.warnings == [CodedWarning("conflicts", "ids with more than one class: i0")]


def test_what_the_source_says_stays():
    labels, own = np.arange(60) % 3, np.repeat([0, 2], [40, 20])
    found = carve(labels, given_splits=own)
    assert ((found.splits == 2) == (own == 2)).all()
    assert (found.splits == 1).sum() == 3
    assert found.rule.startswith("val carved from train")
    assert carve(labels, given_splits=np.repeat([0, 1, 2], 20)).rule == "the source's own train, val and test"


def test_a_group_that_the_source_itself_has_in_two_splits():
    with pytest.raises(InputError, match="1 groups are in more than one split of the source, the first with row 3"):
        carve([0, 1, 0, 1, 0, 1], np.array([0, 1, 2, 3, 3, 4]), given_splits=[0, 0, 0, 0, 2, 2])


def test_too_few_groups():
    message = (
        r"2 different ids or groups in 4 training rows, too few to carve val and test .*: .*choose other ids or groups"
    )
    with pytest.raises(InputError, match=message):
        carve([0, 1, 0, 1], np.array([0, 0, 1, 1]))


def test_classes_that_training_does_not_see_are_recorded():
    found = carve([0, 1, 0, 1, 2], given_splits=[0, 0, 1, 1, 2])
    assert [str(one) for one in found.warnings] == [
        "unanswerable: test has classes without a training row, which no head can answer: '2'"
    ]


def test_ids_in_two_splits_of_the_source_are_recorded():
    labels = {"train": np.arange(30) % 3, "test": np.arange(28, 34) % 3}
    rows = {split: np.random.default_rng(0).normal(size=(len(part), 2)) for split, part in labels.items()}
    ids = {"train": [f"a{row}" for row in range(30)], "test": [f"a{row}" for row in range(28, 34)]}
    found = FeatureSet.from_arrays(rows, labels, ids=ids)
    assert found.manifest.warnings[0] == CodedWarning("shared-ids", "ids in more than one split: a28, a29")
