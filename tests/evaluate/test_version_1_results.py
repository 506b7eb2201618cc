"""Results that an older headsmith wrote, whose warnings were sentences without codes, still open."""

import csv
import shutil
from pathlib import Path

import pytest

from headsmith.core.coded_warnings import CodedWarning
from headsmith.evaluate.held_out_record import HeldOutSource
from headsmith.evaluate.results import ResultsFolder, load_results

WRITTEN = Path(__file__).parent / "version_1_results"


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(WRITTEN, tmp_path / "results")


def test_the_result_is_read_with_codes(folder):
    result = load_results(folder)["a"]
    assert [warning.code for warning in result.warnings] == [
        *("chance", "busy-machine", "not-finite-in-batch", "uncoded"),
        "speed-not-timed",  # which was a note
    ]
    assert result.notes == ["takes one image at a time"]
    assert result.worthless
    assert result.setup.preprocessing.background is None  # recipes did not say it where alpha was dropped
    assert [one.reason for one in result.unreadable] == ["y"]


def test_the_held_out_set_is_read(folder):
    data = load_results(folder).data
    assert data.source == HeldOutSource("photos", truth="x.csv")
    assert data.warnings == [CodedWarning("uncoded", "1 rows of truth.csv have no image: x")]


def test_the_column_of_warnings_has_its_new_name(folder):
    old = load_results(folder)
    assert "one class takes 95%" in old.frame()["warnings"][0]
    ResultsFolder(folder, old.data).update(old[0])
    with (folder / "results.csv").open(newline="") as file:
        heading, *rows = csv.reader(file)
    assert "flags" not in heading
    assert rows[0][heading.index("warnings")].startswith("chance: top-1, 1 %")
    assert load_results(folder)[0].warnings == old[0].warnings
