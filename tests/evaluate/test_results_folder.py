"""The results folder: what is written is read again, by several writers, after a death, and from an older version."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from evaluated_tables import rows_of
from example_results import DATA, NAMES, made_up

from headsmith.core.errors import DamagedFileError, InputError
from headsmith.evaluate.held_out_record import HeldOutRecord, HeldOutSource
from headsmith.evaluate.metrics import summarize
from headsmith.evaluate.result import FailedModel
from headsmith.evaluate.results import ResultsFolder, load_results
from headsmith.evaluate.results.table import read_table, write_table

TIMM = ["model", "img_size", "top1", "top1_err", "top5", "top5_err", "param_count", "crop_pct", "interpolation"]


def equal(one: object, two: object) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, two, equal_nan=one.dtype.kind == "f") and one.dtype == two.dtype
    if hasattr(one, "__dataclass_fields__"):
        return all(equal(getattr(one, name), getattr(two, name)) for name in one.__dataclass_fields__)
    return one == two


def test_what_is_written_is_read_again(tmp_path):
    folder = ResultsFolder(tmp_path, DATA)
    result, predictions = made_up("a", 1, groups=True)
    folder.add(result, predictions)
    found = load_results(tmp_path)
    assert found.data == DATA
    assert equal(found["a"], result)
    again = found.predictions("a")
    assert (again.ids, again.groups) == (predictions.ids, predictions.groups)
    assert equal(again.scores, predictions.scores)
    assert equal(summarize(again.scores), result.summary)
    json.loads((tmp_path / "models" / "a-1" / "result.json").read_text(), parse_constant=pytest.fail)


def test_the_table_and_the_frame(tmp_path):
    folder = ResultsFolder(tmp_path, DATA)
    for name, seed, strength in (("weak", 1, 0.2), ("strong", 2, 4.0), ("close", 3, 3.8)):
        folder.add(*made_up(name, seed, strength))
    folder.fail([FailedModel("broken", "broken.onnx", "no logits", "broken")])
    folder.rank()
    frame = load_results(tmp_path).frame().set_index("model")
    assert [frame.index.name, *frame.columns][: len(TIMM)] == TIMM
    assert frame.loc["strong", "top1"] + frame.loc["strong", "top1_err"] == pytest.approx(100)
    assert frame.loc[["strong", "close", "weak"], "rank"].tolist() == [1, 2, 3]
    assert frame.loc[["strong", "close", "weak"], "tied"].astype(str).tolist() == ["True", "True", "False"]
    assert frame.loc["strong", "param_count"] == 5.29
    assert frame.loc["broken", "error"] == "no logits"
    assert [failed.model for failed in load_results(tmp_path).failed] == ["broken"]


def test_a_failed_model_is_replaced_when_it_succeeds(tmp_path):
    folder = ResultsFolder(tmp_path, DATA)
    folder.fail([FailedModel("a", "a.onnx", "no room", "")])
    folder.add(*made_up("a", 1))
    (row,) = rows_of(tmp_path)
    assert (row["model"], row["error"]) == ("a", "")


def test_a_row_that_was_not_written_before_a_death_comes_back(tmp_path):
    folder = ResultsFolder(tmp_path, DATA)
    result, predictions = made_up("a", 1)
    folder.add(result, predictions)
    (tmp_path / "results.csv").unlink()
    assert equal(ResultsFolder(tmp_path, DATA).find(result.key), result)
    assert [row["key"] for row in rows_of(tmp_path)] == [result.key]
    assert folder.find("another") is None


def test_evaluations_at_once_both_land(tmp_path):
    work = [made_up(f"m{seed}", seed) for seed in range(6)]

    def add(part):
        folder = ResultsFolder(tmp_path, DATA)
        for result, predictions in part:
            folder.add(result, predictions)

    threads = [threading.Thread(target=add, args=(work[start:],)) for start in (0, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(row["model"] for row in rows_of(tmp_path)) == [f"m{seed}" for seed in range(6)]
    assert len(load_results(tmp_path)) == 6


def test_a_table_of_an_older_version_keeps_every_value(tmp_path):
    (tmp_path / "results.csv").write_text('model,top1,images_per_second,comment\n"old, model",71.5,33.0,kept\n')
    ResultsFolder(tmp_path, DATA).add(*made_up("new", 1))
    ResultsFolder(tmp_path, DATA).rank()
    old, new = rows_of(tmp_path)
    assert list(old)[: len(TIMM)] == TIMM
    assert (old["model"], old["top1"], old["images_per_second"], old["comment"]) == (
        "old, model",
        "71.5",
        "33.0",
        "kept",
    )
    assert (new["model"], new["comment"]) == ("new", "")


def test_columns_that_somebody_added_stay(tmp_path):
    folder = ResultsFolder(tmp_path, DATA)
    result, predictions = made_up("a", 1)
    folder.fail([FailedModel("a", "a.onnx", "no room", "")])
    table = tmp_path / "results.csv"
    heading, row = table.read_text().splitlines()
    table.write_text(f"{heading},my_note\n{row},try again\n")
    folder.add(result, predictions)
    assert [(row["error"], row["my_note"]) for row in rows_of(tmp_path)] == [("", "try again")]
    table.write_text(table.read_text().replace("photos", "edited"))
    before = table.read_text()
    assert folder.find(result.key) is not None
    assert table.read_text() == before


def test_another_held_out_set_needs_another_folder(tmp_path):
    ResultsFolder(tmp_path, DATA).fail([FailedModel("a", "a.onnx", "no room", "")])
    other = HeldOutRecord("sketches", "e" * 64, NAMES, 60, HeldOutSource("sketches"), [])
    with pytest.raises(InputError, match=r"holds results on photos .* not on sketches .*; choose another `out`"):
        ResultsFolder(tmp_path, other)


def test_a_folder_of_one_results_folder_is_opened_and_one_of_several_lists_them(tmp_path):
    for name in ("photos-test", "nested/drawings-test"):
        ResultsFolder(tmp_path / name, DATA).add(*made_up("a", 1))
    assert load_results(tmp_path / "nested").path == tmp_path / "nested" / "drawings-test"
    assert load_results(tmp_path).path == tmp_path / "photos-test"
    ResultsFolder(tmp_path / "other", DATA).add(*made_up("a", 1))
    with pytest.raises(InputError, match=r"holds 2 results folders, expected one; name one of .*other, .*photos-test"):
        load_results(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "data.json").write_text("{}")
    with pytest.raises(InputError, match="name: missing, expected text"):
        load_results(tmp_path / "empty")


def test_a_model_is_found_by_what_was_evaluated(tmp_path):
    for name, source, seed in (("photos", "bundles/photos", 1), ("lite0", "lite0", 2), ("x", "timm:resnet18", 3)):
        result, predictions = made_up(name, seed)
        ResultsFolder(tmp_path, DATA).add(replace(result, source=source), predictions)
    found = load_results(tmp_path)
    for which in ("photos", "bundles/photos", "./bundles/photos/", Path("bundles/photos").absolute()):
        assert found[str(which)].model == "photos"
    assert found["timm:resnet18"].model == "x"
    with pytest.raises(InputError, match=r"no model 'bundles/potos'; it holds .*; did you mean bundles/photos"):
        found["bundles/potos"]


def test_names_that_a_spreadsheet_would_run_are_text_and_read_back(tmp_path):
    names = ["=cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "'=quoted", "-5"]
    folder = ResultsFolder(tmp_path, DATA)
    folder.fail([FailedModel(name, name, "+broken", f"key{number}") for number, name in enumerate(names)])
    folder.add(*made_up("good", 1))
    folder.rank()
    cells = [row["model"] for row in rows_of(tmp_path)]
    assert cells == ["'=cmd|' /C calc'!A0", "'-2+3", "'@SUM(A1)", "''=quoted", "-5", "good"]
    found = load_results(tmp_path)
    assert [(one.model, one.error) for one in found.failed] == [(name, "+broken") for name in names]
    assert set(found.frame()["model"]) == {*names, "good"}


@pytest.mark.parametrize(
    ("model", "error", "line"),
    [
        ("bomb", "bad/bomb.pt2: too deep", "bad/bomb.pt2: too deep"),
        ("bomb.pt2", "bomb.pt2: too deep", "bomb.pt2: too deep"),
        ("resnet", "bad/bomb.pt2: too deep", "resnet: bad/bomb.pt2: too deep"),
        ("bomb", "recipe.yaml: std: 0 found", "bomb: recipe.yaml: std: 0 found"),
        ("a", "no room", "a: no room"),
    ],
)
def test_a_failure_names_a_file_once(model, error, line):
    assert FailedModel(model, "bad/bomb.pt2", error, "").line == line


@pytest.mark.parametrize("inside", ["holiday.png", "manifest.json", "cat/1.png"])
def test_a_folder_of_something_else_is_left_alone(tmp_path, inside):
    (tmp_path / inside).parent.mkdir(exist_ok=True)
    (tmp_path / inside).write_text("mine")
    with pytest.raises(InputError, match=rf"holds {inside.split('/')[0]}, not results; choose another"):
        ResultsFolder(tmp_path, DATA)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / inside]


def test_an_empty_folder_and_one_of_an_evaluation_that_failed_early_are_taken(tmp_path):
    (tmp_path / ".lock").touch()
    ResultsFolder(tmp_path, DATA).add(*made_up("a", 1))
    assert len(load_results(tmp_path)) == 1


def test_figures_that_there_are_not_are_empty(tmp_path):
    """Of four classes there is no top-5."""
    folder = ResultsFolder(tmp_path, DATA)
    result, predictions = made_up("a", 1)
    summary = replace(result.summary, top={k: share for k, share in result.summary.top.items() if k < 5} | {5: None})
    folder.add(replace(result, summary=summary), predictions)
    assert read_table(tmp_path / "results.csv")[0]["top5"] == ""
    assert len(load_results(tmp_path)) == 1


@pytest.mark.parametrize(("column", "value"), [("top1", "99.5"), ("nll", "0.001"), ("ece", "text"), ("top1", "")])
def test_a_figure_of_the_table_that_was_edited_is_refused(tmp_path, column, value):
    folder = ResultsFolder(tmp_path, DATA)
    folder.add(*made_up("a", 1))
    rows = read_table(tmp_path / "results.csv")
    write_table(tmp_path / "results.csv", [{**rows[0], column: value}])
    with pytest.raises(
        DamagedFileError, match=rf"results\.csv: a: {column}: '{value}' found, its result\.json says .*edited"
    ):
        load_results(tmp_path)
