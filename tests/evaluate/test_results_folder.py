"""The results folder: what is written is read again, by several writers, after a death, and from an older version."""

import csv
import json
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headsmith.core.errors import DamagedFileError, InputError
from headsmith.evaluate.held_out_record import HeldOutRecord, HeldOutSource
from headsmith.evaluate.measuring.speed import Latency, Speed
from headsmith.evaluate.metrics import Scorer, class_table, confused_pairs, reliability, selective, summarize
from headsmith.evaluate.result import EvalResult, EvaluationSetup, FailedModel
from headsmith.evaluate.results import Predictions, ResultsFolder, load_results

NAMES = ["ant", "bee", "cow", "dog", "<b>emu</b>", "fox"]
TIMM = ["model", "img_size", "top1", "top1_err", "top5", "top5_err", "param_count", "crop_pct", "interpolation"]
DATA = HeldOutRecord("photos", "f" * 64, NAMES, 60, HeldOutSource("photos"), [])


def made_up(name: str, seed: int, strength: float = 1.0, groups: bool = False) -> tuple[EvalResult, Predictions]:
    random = np.random.default_rng(seed)
    labels = np.arange(60) % 6
    logits = random.normal(size=(60, 6)).astype(np.float32)
    logits[np.arange(60), labels] += strength
    scorer = Scorer(6)
    scorer.add(logits, labels)
    scores = scorer.scores()
    right = scores.correct()
    setup = EvaluationSetup(
        file="model.onnx", bytes=1000, parameters=5_288_548, image_size=224, crop_pct=0.875, interpolation="bicubic",
        preprocessing=None, provider="CPUExecutionProvider", provider_name="cpu", provider_options={},
        nodes={"CPUExecutionProvider": 9},
        threads=1, runtime="onnxruntime 1.31", device="cpu", batch_size=64, data=DATA.name,
        data_sha256=DATA.fingerprint, model_sha256=str(seed), labels_sha256="", preprocessing_sha256="",
        versions={"python": "3.11"}, created="2026-01-01T00:00:00+00:00",
    )  # fmt: skip
    speed = Speed(0.1, 0.2, 100.0, 50.0, 80.0, Latency(1.0, 2.0, 3.0, 20, 0.9), {1: 90.0, 8: 110.0}, 10**8, None)
    result = EvalResult(
        key=f"{name}-{seed}", model=name, source=f"{name}.onnx", labels=NAMES, summary=summarize(scores), subset=None,
        groups={}, classes=class_table(scores), confused=confused_pairs(scores),
        reliability=reliability(scores.confidences, right), selective=selective(scores.confidences, right),
        speed=speed, setup=setup, verdict=None, against=None, warnings=[], not_finite=0, unreadable=[], duplicates=0,
    )  # fmt: skip
    ids = [f"{number}.png" for number in range(60)]
    return result, Predictions(ids, scores, ["fog", "snow"] * 30 if groups else None)


def equal(one: object, two: object) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, two, equal_nan=one.dtype.kind == "f") and one.dtype == two.dtype
    if hasattr(one, "__dataclass_fields__"):
        return all(equal(getattr(one, name), getattr(two, name)) for name in one.__dataclass_fields__)
    return one == two


def rows_of(path) -> list[dict[str, str]]:
    with (path / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


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


def test_damaged_files_are_named(tmp_path):
    ResultsFolder(tmp_path / "new", DATA)
    assert not (tmp_path / "new").exists()
    with pytest.raises(InputError, match="holds no results"):
        load_results(tmp_path)
    folder = ResultsFolder(tmp_path, DATA)
    result, predictions = made_up("a", 1)
    folder.add(result, predictions)
    with pytest.raises(InputError, match="holds no model 'b'; it holds a"):
        load_results(tmp_path)["b"]
    (tmp_path / "models" / "a-1" / "predictions.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"predictions\.parquet: cannot be read"):
        load_results(tmp_path).predictions("a")
    (tmp_path / "models" / "a-1" / "result.json").write_text('{"key": 1}')
    with pytest.raises(InputError, match=r"result\.json: model: missing, expected text; damaged, or of another"):
        load_results(tmp_path)
    (tmp_path / "models" / "a-1" / "result.json").unlink()
    (tmp_path / "results.csv").write_text("a,b\n1,2,3\n")
    with pytest.raises(InputError, match=r"results\.csv: not a table of results"):
        folder.rank()


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
    ("file", "text", "message"),
    [
        ("data.json", "", r"data\.json: not valid JSON"),
        ("data.json", "[" * 100_000, r"data\.json: not valid JSON"),
        (
            "data.json",
            '{"name": 1' + "0" * 5000 + "}",
            r"data\.json: not valid JSON \(a number of thous",
        ),
        ("data.json", '{"name": 1}', r"data\.json: name: found 1, expected text|fingerprint: missing"),
        ("results.csv", "model\n\0\xff", r"results\.csv: line 2: byte 0xff is not UTF-8"),
        ("results.csv", 'model,a\n"x', r"results\.csv: after line 1: not a table of results"),
        ("results.csv", "model,a\nx\n", r"results\.csv: row 1: other than 2 cells found"),
        ("results.csv", "modell\nx\n", r"results\.csv: .*no column `model`"),
        ("results.csv", "model\n" + "x" * 200_000, r"results\.csv: after line 1: not a table of results"),
        ("models/a-1/result.json", '{"key": null}', r"result\.json: model: missing"),
    ],
)
def test_what_is_damaged_is_named_in_one_line(tmp_path, file, text, message):
    ResultsFolder(tmp_path, DATA).add(*made_up("a", 1))
    (tmp_path / file).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=message) as error:
        load_results(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 61}, "n: not what the evaluation wrote"),
        ({"name": "other"}, "name: not what the evaluation wrote"),
        ({"class_names": NAMES[::-1]}, "class_names: not what the evaluation wrote"),
        ({"n": 61, "fields_sha256": None}, "fields_sha256: missing"),
        ({"n": 61, "fields_sha256": {}}, "class_names, fingerprint, n: not what the evaluation wrote"),
    ],
)
def test_an_edited_held_out_set_is_refused(tmp_path, change, message):
    ResultsFolder(tmp_path, DATA).add(*made_up("a", 1))
    values = json.loads((tmp_path / "data.json").read_text()) | change
    (tmp_path / "data.json").write_text(json.dumps(values))
    with pytest.raises(DamagedFileError, match=rf"data\.json: {message}.*evaluate again into"):
        load_results(tmp_path)


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("summary.top.1.value", 0.999, r"summary\.top\.1: value: found 0\.999"),
        ("summary.top.1.low", -0.5, r"summary\.top\.1: low: found -0\.5"),
        ("summary.top.5.high", 1.5, r"summary\.top\.5: high: found 1\.5"),
        ("summary.top.1.n", 61, r"summary\.top\.1: value"),
        ("summary.top.1.correct", -1, r"summary\.top\.1: correct: found -1 of 60"),
        ("summary.n", 59, r"summary: top\.1\.n: found 60, expected 59"),
        ("summary.nll", -1.0, r"summary: nll: found -1\.0"),
        ("summary.nll", "nan", r"summary: nll: found nan"),
        ("summary.brier", 7.0, r"summary: brier: found 7\.0"),
        ("summary.num_classes", 5, r"summary\.num_classes: found 5, expected 6"),
        ("unreadable", [{"id": "x", "reason": "y"}], r"summary\.n: found 60, expected at most 60"),
        ("speed.latency.p50", -1e308, r"speed\.latency: found .* expected 0 <= p10"),
        ("speed.load_seconds", "inf", r"speed: load_seconds: found inf"),
        ("speed.throughput.8", -1.0, r"speed: throughput\.8: found -1\.0"),
    ],
)
def test_a_figure_that_cannot_be_is_refused(tmp_path, place, value, said):
    ResultsFolder(tmp_path, DATA).add(*made_up("a", 1))
    path = tmp_path / "models" / "a-1" / "result.json"
    values = json.loads(path.read_text())
    *outer, last = place.split(".")
    inner = values
    for name in outer:
        inner = inner[name]
    inner[last] = value
    path.write_text(json.dumps(values))
    with pytest.raises(DamagedFileError, match=rf"result\.json: {said}"):
        load_results(tmp_path)


def test_what_is_lost_from_a_folder_is_named(tmp_path):
    ResultsFolder(tmp_path, DATA).add(*made_up("a", 1))
    results = load_results(tmp_path)
    with pytest.raises(InputError, match="holds no model 9; it holds 1"):
        results.predictions(9)
    (tmp_path / "models" / "a-1" / "result.json").unlink()
    with pytest.raises(DamagedFileError, match=r"result\.json: not found, but results\.csv lists 'a'; evaluate it"):
        load_results(tmp_path)
    (tmp_path / "results.csv").unlink()
    with pytest.raises(InputError, match=r"results\.csv: not found"):
        results.frame()


def test_results_and_predictions_of_others_are_refused(tmp_path):
    ResultsFolder(tmp_path, DATA).add(*made_up("a", 1))
    ResultsFolder(tmp_path / "b", DATA).add(*made_up("b", 2))
    (result,) = (tmp_path / "b" / "models").glob("*/result.json")
    (tmp_path / "models" / "a-1" / "result.json").write_text(result.read_text())
    with pytest.raises(InputError, match=r"result\.json: key: not that of the folder"):
        load_results(tmp_path)


def test_predictions_that_contradict_themselves_are_refused(tmp_path):
    result, predictions = made_up("a", 1)
    for name, value in (("topk_indices", 6), ("labels", -1), ("ranks", 9)):
        column = getattr(predictions.scores, name).copy()
        column.flat[0] = value
        broken = Predictions(predictions.ids, replace(predictions.scores, **{name: column}))
        ResultsFolder(tmp_path / name, DATA).add(result, broken)
        with pytest.raises(InputError, match=rf"predictions\.parquet: .*{name}: found classes outside of 0\.\.5"):
            load_results(tmp_path / name).predictions("a")


def edited(path: Path, **columns):
    """Change columns of a file of predictions."""
    table = pq.read_table(path)
    for name, change in columns.items():
        place, old = table.schema.get_field_index(name), table[name].combine_chunks()
        values = change(np.array(old.to_pylist()))
        table = table.set_column(place, table.schema.field(name), pa.array(values.tolist(), old.type))
    pq.write_table(table, path)


@pytest.mark.parametrize(
    ("column", "change", "message"),
    [
        ("rank", np.zeros_like, "rank: found 0 in row"),
        ("rank", lambda ranks: (ranks + 1) % 6, "rank: found"),
        ("label", lambda labels: (labels + 1) % 6, "rank: found"),
        ("max_probability", lambda values: values * 0 + 9, "max_probability: found others"),
        ("max_probability", lambda values: values * np.nan, "max_probability: found others"),
        ("topk_scores", lambda values: values + 9, "topk_scores: found .*, expected probabilities of 0 to 1"),
        ("topk_scores", lambda values: -values, "topk_scores: found .*, expected probabilities of 0 to 1"),
        ("sum_of_squares", lambda values: values + 2, "squares: found .*, expected probabilities of 0 to 1"),
        ("log_probability", np.abs, "log_probabilities: found .*, expected 0 or below"),
    ],
)
def test_edited_predictions_are_refused(tmp_path, column, change, message):
    result, predictions = made_up("a", 1)
    ResultsFolder(tmp_path, DATA).add(result, predictions)
    edited(tmp_path / "models" / result.key / "predictions.parquet", **{column: change})
    with pytest.raises(InputError, match=rf"predictions\.parquet: .*{message}.*; evaluate again") as error:
        load_results(tmp_path).predictions("a")
    assert "\n" not in str(error.value)


def test_probabilities_that_were_taken_away_are_missed(tmp_path):
    result, predictions = made_up("a", 1)
    ResultsFolder(tmp_path, DATA).add(result, predictions)
    path = tmp_path / "models" / result.key / "predictions.parquet"
    edited(path, topk_scores=lambda values: values * np.nan, max_probability=lambda values: values * np.nan)
    with pytest.raises(InputError, match=r"60 rows are without a softmax, its result\.json says 0; evaluate again"):
        load_results(tmp_path).predictions("a")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("summary", "nll"), 0.0123),
        (("summary", "brier"), 0.01),
        (("summary", "ece"), 0.3),
        (("summary", "aurc"), 0.2),
        (("summary", "mean_recall"), 0.9),
        (("classes", "mistaken", 0), 59),
        (("reliability", "accuracy", 14), 0.5),
    ],
)
def test_figures_that_do_not_follow_from_the_predictions_are_refused(tmp_path, place, value):
    ResultsFolder(tmp_path, DATA).add(*made_up("a", 1))
    (path,) = (tmp_path / "models").glob("*/result.json")
    values = json.loads(path.read_text())
    part = values
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    path.write_text(json.dumps(values))
    with pytest.raises(DamagedFileError, match=rf"{place[0]}\.{place[1]}: not what follows from"):
        load_results(tmp_path).predictions(0)


def test_predictions_of_another_model_are_refused(tmp_path):
    folder = ResultsFolder(tmp_path, DATA)
    for name, seed, strength in (("weak", 1, 0.2), ("strong", 2, 4.0)):
        folder.add(*made_up(name, seed, strength))
    one, other = (tmp_path / "models" / key / "predictions.parquet" for key in ("weak-1", "strong-2"))
    one.write_bytes(other.read_bytes())
    with pytest.raises(InputError, match=r"parquet: \d+ rows are right by top-1, its result\.json says \d+"):
        load_results(tmp_path).correct()


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("topk_indices", "topk_indices missing, expected what `headsmith evaluate` writes"),
        ("rank", "columns id, label, .* found, rank missing"),
        ("group", "group missing"),
        (None, "topk_logits: .*list.* found, expected lists of one length"),
        ("note", "has no note headsmith.predictions"),
        ("all", "columns image, class found, id, label, rank, .*, group missing"),
        ("csv", "cannot be read as predictions"),
    ],
)
def test_predictions_of_another_kind_are_named_by_file_and_column(tmp_path, column, said):
    ResultsFolder(tmp_path, DATA).add(*made_up("a", 1))
    path = tmp_path / "models" / "a-1" / "predictions.parquet"
    table = pq.read_table(path)
    if column is None:
        values = pa.array(table["topk_logits"].to_pylist(), pa.list_(pa.float32()))
        table = table.set_column(table.column_names.index("topk_logits"), "topk_logits", values)
    elif column == "note":
        table = table.replace_schema_metadata(None)
    elif column == "all":
        table = pa.table({"image": ["a.png"], "class": ["ant"]})
    elif column != "csv":
        table = table.drop_columns(column)
    pq.write_table(table, path)
    if column == "csv":
        path.write_text("id,label\na,0\n")
    with pytest.raises(DamagedFileError, match=rf"predictions\.parquet: .*{said}.*evaluate again") as error:
        load_results(tmp_path).predictions("a")
    assert "\n" not in str(error.value)


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
