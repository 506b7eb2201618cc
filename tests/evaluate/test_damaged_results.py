"""Results folders that were damaged or edited: one line that names the file and the field."""

import json

import pytest
from example_results import DATA, NAMES, made_up

from headsmith.core.errors import DamagedFileError, InputError
from headsmith.core.records import with_hashes
from headsmith.evaluate.results import ResultsFolder, load_results


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
        ("results.csv", "model,a\nx\n", r"results\.csv: row 1: more or fewer than 2 cells found"),
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
    path.write_text(json.dumps(with_hashes(values)))
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
