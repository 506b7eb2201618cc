"""Class names in two spellings are told, and names that are given are held against those that a file has."""

import re

import datasets
import numpy as np
import pytest

from headsmith.core.errors import InputError
from headsmith.trainer import FeatureSet, extract, import_features
from headsmith.trainer.features.images.spellings import spelt_alike

ROWS = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
LABELS = np.arange(60) % 3


@pytest.mark.parametrize(
    ("pair", "written"),
    [
        ((" a", "a"), "' a' and 'a'"),
        (("Cat", "cat"), "'Cat' and 'cat'"),
        (("caf\u00e9", "cafe\u0301"), r"'café' and 'cafe\u0301'"),
        (("\u00e9", "e\u0301"), r"'é' and 'e\u0301'"),
        (("hot dog", "hot\u00a0dog"), r"'hot dog' and 'hot\xa0dog'"),
        (("hot_dog", "Hot  dog"), "'hot_dog' and 'Hot  dog'"),
        (("cat", "c\u200bat"), r"'cat' and 'c\u200bat'"),
        (("\uff21bc", "abc"), r"'\uff21bc' and 'abc'"),
    ],
)
def test_one_name_written_in_two_ways(pair, written):
    (warning,) = spelt_alike(["dog", pair[0], "emu", pair[1]])
    assert f": {written}; where they are one class" in warning.message


@pytest.mark.parametrize(
    "names",
    [
        ["a", "A", "b", "B"],
        ["1", "2", "10", "-1", "1.0", "²", "Ⅱ"],
        ["cats", "cat", "t-shirt", "t shirt"],
        ["e", "é", "ss"],
        ["_", "-"],
    ],
    ids=["letters", "numbers", "words", "accents", "signs"],
)
def test_other_names_are_no_pairs(names):
    assert spelt_alike(names) == []


def test_import_and_extract_tell_it_once_and_merge_nothing(tmp_path, image_folder, tiny_backbone):
    names = np.array(["Cat", "cat", "dog "])[LABELS]
    made = FeatureSet.from_arrays(ROWS, names)
    assert made.class_names == ["Cat", "cat", "dog "]
    assert [one for one in made.manifest.warnings if "'Cat' and 'cat'" in one.message] == made.manifest.warnings
    images = image_folder({"Cat": 4, "cat": 4})
    made = extract(images, out=tmp_path / "set", device="cpu", **tiny_backbone._asdict())
    assert sum("'Cat' and 'cat'" in one.message for one in made.manifest.warnings) == 1
    assert made.class_names == ["Cat", "cat"]


@pytest.fixture
def named(tmp_path):
    """A data set that calls its classes ant, bee and cat."""
    kinds = {"x": datasets.List(datasets.Value("float32"), length=4), "label": datasets.ClassLabel(names=NAMES)}
    rows = {"x": ROWS.tolist(), "label": LABELS.tolist()}
    datasets.Dataset.from_dict(rows, features=datasets.Features(kinds)).save_to_disk(tmp_path / "data")
    return tmp_path / "data"


NAMES = ["ant", "bee", "cat"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            ["Ameise", "bee", "Katze"],
            "3 class names take the place of the 3 of .*: 'ant' is 'Ameise', 'cat' is 'Katze'",
        ),
        ([*NAMES, "dog"], "4 class names take the place of the 3 of "),
        (NAMES, None),
    ],
)
def test_names_take_the_place_of_a_files_own(named, given, told, tmp_path):
    (tmp_path / "names.txt").write_text("\n".join(given))
    made = import_features(named, out=tmp_path / "set", class_names=tmp_path / "names.txt")
    assert made.class_names == given
    found = [one.message for one in made.manifest.warnings if one.code == "replaced-names"]
    assert len(found) == (told is not None)
    if told:
        assert re.search(told, found[0])


@pytest.mark.parametrize("given", [["cat", "bee", "ant"], ["background", *NAMES], ["bee", "cat"]])
def test_names_in_another_order_than_a_files_own_are_refused(named, given, tmp_path):
    (tmp_path / "names.txt").write_text("\n".join(given))
    with pytest.raises(InputError, match="its own names have '.*' at 0, `class_names` at .|have 'bee' at 1, .* at 0"):
        import_features(named, out=tmp_path / "set", class_names=tmp_path / "names.txt")


def test_names_in_an_archive_are_its_own(tmp_path):
    np.savez(tmp_path / "x.npz", x=ROWS, y=LABELS, class_names=NAMES)
    (tmp_path / "names.txt").write_text("bee\nant\ncat\n")
    with pytest.raises(InputError, match="its own names have 'ant' at 0, `class_names` at 1"):
        import_features(tmp_path / "x.npz", out=tmp_path / "set", class_names=tmp_path / "names.txt")
