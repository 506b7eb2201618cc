"""Runs and sweeps of the version before open: `version_1` holds what that wrote."""

import json
import shutil
from pathlib import Path

import pytest

from headsmith.core.errors import DamagedFileError
from headsmith.core.records import field_hashes
from headsmith.trainer import Run
from headsmith.trainer.run_record import InitializationRecord
from headsmith.trainer.scores import SplitScores
from headsmith.trainer.sweep import Sweep

FILES = Path(__file__).parent / "version_1"
RUN, SWEEP = json.loads((FILES / "run/run.json").read_text()), json.loads((FILES / "sweep.json").read_text())


@pytest.fixture
def changed(tmp_path):
    """A function: the folder of a run or a sweep whose record is another one, with the hashes of its fields."""

    def write(name, record):
        folder = shutil.copytree(FILES / "run", tmp_path / "run") if name == "run.json" else tmp_path
        hashes = {"fields_sha256": field_hashes(record, without=("fields_sha256",))} if name == "run.json" else {}
        (folder / name).write_text(json.dumps(record | hashes))
        return folder

    return write


def test_a_run_opens():
    run = Run.load(FILES / "run")
    assert run.record.initialization == InitializationRecord("first", head_sha256=RUN["start"]["head_sha256"])
    (warning,) = run.record.warnings
    assert RUN["doubts"] == [f"chance level: {warning.message}"]
    assert (warning.code, run.worthless) == ("chance", True)
    assert run.record.results.test == SplitScores(**RUN["results"]["test"])


def test_a_run_that_was_edited_is_refused(tmp_path):
    folder = shutil.copytree(FILES / "run", tmp_path / "run")
    (folder / "run.json").write_text(json.dumps(RUN | {"doubts": []}))
    with pytest.raises(DamagedFileError, match="run.json: doubts: not what the training wrote"):
        Run.load(folder)


def test_the_first_runs_open(changed):
    """Before there were initial heads, warnings and counts of processes; a split without rows was ``{}``."""
    lacking = ("loss", "start", "doubts", "processes")
    first = {name: one for name, one in RUN.items() if name not in lacking}
    first["features"] = {name: one for name, one in RUN["features"].items() if name != "placement"}
    run = Run.load(changed("run.json", first | {"results": RUN["results"] | {"test": {}}}))
    assert run.record.initialization == InitializationRecord("zeros")
    assert (run.record.warnings, run.record.processes, run.record.results.test) == ([], 1, None)
    assert "test top-1" not in repr(run)


def test_a_sweep_opens():
    sweep = Sweep.load(FILES)
    assert [row.group for row in sweep.record.groups] == [row["contender"] for row in SWEEP["contenders"]]
    assert {row.chosen for row in sweep.settings} == {"winner", "group", ""}
    assert [warning.code for warning in sweep.warnings] == [one["code"] for one in SWEEP["findings"]]
    for ours, theirs in zip(sweep.settings, SWEEP["settings"], strict=True):
        assert ours.settings["learning_rate"] == theirs["learning_rate"]
        assert ours.test_top1_mean == theirs["test_top1_mean"]
    assert sweep.record.winner.config.loss == SWEEP["winner"]["config"]["loss"]


def test_a_sweep_without_a_test_split_opens(changed):
    assert (
        Sweep.load(changed("sweep.json", SWEEP | {"winner": SWEEP["winner"] | {"test": {}}})).record.winner.test is None
    )


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"results": RUN["results"] | {"val": {"n": 6}}}, "results.val.loss: missing, expected a number"),
        ({"results": 3}, "results: found 3, expected an object"),
        ({"start": "zeros"}, "initialization: found 'zeros', expected an object"),
        ({"start": {"from": 1}}, "initialization.source: found 1, expected text"),
        ({"doubts": [1]}, r"warnings\[0\]: found 1, expected an object"),
        ({"seed": None}, "seed: found null, expected a whole number"),
        ({"sead": 0}, "sead: is no field of this version; did you mean seed"),
        ({"features": RUN["features"] | {"path": 4}}, "features.path: found 4, expected text"),
    ],
)
def test_a_field_of_a_run_that_is_wrong_is_told(changed, change, match):
    with pytest.raises(DamagedFileError, match=f"run.json: {match}.*; train again"):
        Run.load(changed("run.json", RUN | change))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"contenders": 3}, "groups: found 3, expected a list"),
        ({"contenders": [4]}, r"groups\[0\]: found 4, expected an object"),
        ({"winner": None}, "winner: found null, expected an object"),
        ({"winner": SWEEP["winner"] | {"config": {"los": "softmax"}}}, "winner.config.los: is no field"),
        ({"settings": [SWEEP["settings"][0] | {"val_top1_mean": "9"}]}, r"settings\[0\].val_top1_mean: found '9'"),
        ({"settings": [SWEEP["settings"][0] | {"note": "9"}]}, r"settings\[0\].note: is no field"),
        (
            {"paired": {"split": "test", "tests": {"a": {"top1": {"p": 1.0}}}}},
            "paired.tests.a.top1.only_first: missing",
        ),
        ({"findings": ["x"]}, r"warnings\[0\]: found 'x', expected an object"),
    ],
)
def test_a_field_of_a_sweep_that_is_wrong_is_told(changed, change, match):
    with pytest.raises(DamagedFileError, match=f"sweep.json: {match}.*; sweep again"):
        Sweep.load(changed("sweep.json", SWEEP | change))
