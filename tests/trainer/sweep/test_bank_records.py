"""What an unfinished sweep reads back of its finished banks."""

import json

import pytest

from headsmith.core.errors import DamagedFileError
from headsmith.trainer.sweep.grid import Trial, spelt_out
from headsmith.trainer.sweep.unfinished import read_bank
from headsmith.trainer.train_config import TrainConfig

TRIAL = Trial("a", TrainConfig(epochs=1, learning_rate=0.1, patience=1))


def row():
    scores = {"n": 8, "loss": 1.0, "top1": 0.5, "top5": 1.0, "score": 0.5}
    where = {"placement": "memory", "device": "cpu", "initialization": {"source": "zeros"}}
    config = json.loads(json.dumps(spelt_out(TRIAL.config)))
    return {"config": config, "best": None, "history": [], "val": scores, "seconds": 1.0, "diverged": False, **where}


def test_a_bank_is_read_back(tmp_path):
    (tmp_path / "bank.json").write_text(json.dumps({"heads": [row()]}))
    (head,) = read_bank(tmp_path, [TRIAL], 3)
    assert (head.config, head.bank, head.val.top1) == (TRIAL.config, 3, 0.5)


@pytest.mark.parametrize(
    ("record", "match"),
    [
        ({}, "heads: missing"),
        ({"heads": {}}, "heads: found an object, expected a list"),
        ({"heads": []}, "heads: found 0, expected 1"),
        ({"heads": [row() | {"seconds": "1"}]}, r"heads\[0\]\.seconds: found '1', expected a number"),
        ({"heads": [row() | {"diverged": 0}]}, r"heads\[0\]\.diverged: found 0, expected true or false"),
        ({"heads": [row() | {"history": [1]}]}, r"heads\[0\]\.history\[0\]: found 1, expected an object"),
        ({"heads": [row() | {"val": row()["val"] | {"n": 8.0}}]}, r"heads\[0\]\.val\.n: found 8\.0, expected a whole"),
        ({"heads": [row() | {"val": {"n": 8}}]}, r"heads\[0\]\.val\.loss: missing, expected a number"),
        ({"heads": [row() | {"config": {"epochs": "9"}}]}, r"heads\[0\]\.config\.epochs: found '9', expected a whole"),
        ({"heads": [row() | {"config": {"epochs": -9}}]}, r"heads\[0\]\.config: epochs: -9 found, expected a whole"),
        ({"heads": [row() | {"best": {"epoch": 1}}]}, r"heads\[0\]\.best\.loss: missing, expected a number"),
        ({"heads": [row() | {"note": 1}]}, r"heads\[0\]\.note: is no field"),
        ({"heads": [row() | {"config": {"epoch": 9}}]}, r"heads\[0\]\.config\..*epoch"),
    ],
)
def test_a_bank_of_another_shape_is_told(tmp_path, record, match):
    (tmp_path / "bank.json").write_text(json.dumps(record))
    with pytest.raises(DamagedFileError, match=rf"bank\.json: {match}.*sweep again") as error:
        read_bank(tmp_path, [TRIAL], 0)
    assert "\n" not in str(error.value)
