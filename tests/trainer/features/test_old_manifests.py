"""Feature sets of the version before open, their warnings with codes: `version_1_manifest.json` is what it wrote."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from headsmith.core.errors import DamagedFileError
from headsmith.core.records import to_json
from headsmith.trainer import FeatureSet, extract, inspect_features

OLD = json.loads(Path(__file__).with_name("version_1_manifest.json").read_text())
CODES = ["unanswerable", "shared-ids", "uncoded", "leak"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The rows of the old manifest: one class in two spellings, one without training rows, a row and an id twice."""
    rows = np.random.default_rng(0).normal(size=(24, 2)).astype(np.float32)
    labels = {"train": np.arange(12) % 2, "val": np.arange(6) % 2, "test": np.array([0, 1, 2, 0, 1, 2])}
    parts = {"train": rows[:12], "val": rows[12:18], "test": rows[18:]}
    parts["test"][1] = parts["train"][3]
    ids = {split: [f"{split}{row}" for row in range(len(part))] for split, part in parts.items()}
    ids["test"][5] = "train7"
    made = FeatureSet.from_arrays(
        parts, labels, ids=ids, class_names=["cat", "Cat", "dog"], out=tmp_path_factory.mktemp("old") / "set"
    )
    assert [one.code for one in made.manifest.warnings] == [
        "similar-names",
        "unanswerable",
        "shared-ids",
        "conflicts",
        "leak",
    ]
    (made.path / "manifest.json").write_text(json.dumps(OLD))
    return made.path


def test_an_imported_set_opens(folder):
    found = FeatureSet.load(folder)
    assert [one.code for one in found.manifest.warnings] == CODES
    assert [one.message for one in found.manifest.warnings] == [*OLD["warnings"], *OLD["imported"]["equal_rows"]]
    told = inspect_features(found)
    assert [one.code for one in told.problems] == ["shared-ids", "leak", "unanswerable"]
    assert [one.code for one in told.warnings] == ["uncoded"]  # the others are told once, in the words of inspect


def test_an_extracted_set_opens_and_is_taken_as_it_is(image_folder, tiny_backbone, tmp_path):
    images, options = image_folder({"cat": 5, "dog": 5}), {"device": "cpu", **tiny_backbone._asdict()}
    shutil.copyfile(images / "cat/000.png", images / "cat/900.png")
    made = extract(images, out=tmp_path / "set", flip=True, **options)
    values = to_json(made.manifest)
    assert values["warnings"]
    old = values | {"warnings": [one["message"] for one in values["warnings"]]}
    for found in old["copies"]["across"].values():
        del found["classes"]
    (made.path / "manifest.json").write_text(json.dumps(old))
    assert [one.code for one in extract(images, out=tmp_path / "set", flip=True, **options).manifest.warnings] == [
        one.code for one in made.manifest.warnings
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"note": "x"}, "note: is no field of this version"),
        ({"copies": {"within": []}}, "copies.across: missing"),
        ({"warnings": "many"}, "warnings: found 'many', expected a list"),
        ({"warnings": [{"code": "leak"}]}, r"warnings\[0\].message: missing"),
        ({"request": OLD["request"] | {"seed": 0}}, "request.seed: is no field of this version"),
        ({"statistics": OLD["statistics"] | {"min": "low"}}, "statistics.min: found 'low', expected a number"),
        ({"imported": {"files": [], "columns": {}}}, "imported.not_read: missing"),
        ({"unreadable": [{"id": "a"}]}, r"unreadable\[0\].reason: missing"),
    ],
)
def test_a_field_that_does_not_fit_is_one_line(folder, tmp_path, change, message):
    copy = shutil.copytree(folder, tmp_path / "set")
    (copy / "manifest.json").write_text(json.dumps(OLD | change))
    with pytest.raises(DamagedFileError, match=rf"manifest\.json: {message}.*; make it again with `overwrite`$"):
        FeatureSet.load(copy)
