"""Results that somebody edited, and models that failed."""

import json
from dataclasses import replace

import pytest
from example_results import DATA, made_up

from headsmith.core.errors import DamagedFileError, InputError
from headsmith.evaluate.result import FailedModel
from headsmith.evaluate.results import ResultsFolder, load_results


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "better"}, "model: not what the evaluation wrote"),
        ({"warnings": [{"code": "none", "message": "all is well"}]}, "warnings: not what the evaluation wrote"),
        ({"notes": ["x"], "duplicates": 7}, "duplicates, notes: not what the evaluation wrote"),
        ({"fields_sha256": None}, "fields_sha256: missing"),
        ({"fields_sha256": {}}, "against, classes, conditions: not what the evaluation wrote"),
    ],
)
def test_an_edited_result_is_refused(tmp_path, change, message):
    ResultsFolder(tmp_path, DATA).add(*made_up("a", 1))
    path = tmp_path / "models" / "a-1" / "result.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | change))
    with pytest.raises(DamagedFileError, match=rf"result\.json: {message}.*evaluate again into"):
        load_results(tmp_path)
    values["setup"]["provider"] = "CUDAExecutionProvider"
    path.write_text(json.dumps(values))
    with pytest.raises(DamagedFileError, match=r"result\.json: setup: not what"):
        ResultsFolder(tmp_path, DATA).find("a-1")


def test_an_updated_result_is_hashed_anew(tmp_path):
    folder = ResultsFolder(tmp_path, DATA)
    result, answers = made_up("a", 1)
    folder.add(result, answers)
    folder.update(replace(result, notes=["timed"]))
    assert load_results(tmp_path)["a"].notes == ["timed"]


@pytest.mark.parametrize("which", ["broken", "b.onnx", "zoo/b.onnx"])
def test_a_model_that_failed_is_told_with_why(tmp_path, which):
    folder = ResultsFolder(tmp_path, DATA)
    folder.add(*made_up("a", 1))
    folder.fail([FailedModel("broken", "zoo/b.onnx", "zoo/b.onnx: truncated", "b-2")])
    with pytest.raises(InputError, match=rf"'{which}' failed in this evaluation \(zoo/b.onnx: truncated\)"):
        load_results(tmp_path)[which]
