"""Arguments of public functions that are misspelt, or of another type: one line that names the keyword."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import torch

import headsmith
from headsmith.core.arguments import ArgumentError, named, typed
from headsmith.core.errors import InputError, near
from headsmith.core.printable import short, shown


@dataclass(frozen=True)
class Options:
    learning_rate: float = 0.1


@typed
def work(
    source: str | Path,
    *,
    out: Path | None = None,
    names: Sequence[str] = (),
    share: float = 0.1,
    rows: int | None = None,
    table: Mapping[str, int] | None = None,
    force: bool = False,
    **options: Annotated[Any, Options],
):
    return source


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": 5}, "source: 5 found, expected a path"),
        ({"source": None}, "source: None found, expected a path"),
        ({"source": ""}, "source: '' found, expected a path"),
        ({"source": "  "}, "source: '  ' found, expected a path"),
        ({"source": np.zeros((2, 2))}, "source: a ndarray found, expected a path"),
        ({"source": b"a"}, "source: b'a' found, expected a path"),
        ({"out": "a"}, "out: 'a' found, expected a path or None"),
        ({"names": "ab"}, "names: 'ab' found, expected a list of texts"),
        ({"names": ["a", 1]}, "names: ['a', 1] found, expected a list of texts"),
        ({"share": "0.1"}, "share: '0.1' found, expected a number"),
        ({"share": True}, "share: True found, expected a number"),
        ({"rows": 1.5}, "rows: 1.5 found, expected a whole number or None"),
        ({"rows": np.bool_(True)}, "rows: a bool found, expected a whole number or None"),
        ({"table": [("a", 1)]}, "table: [('a', 1)] found, expected a mapping or None"),
        ({"force": "no"}, "force: 'no' found, expected True or False"),
        ({"forc": True}, "forc: no keyword of work; did you mean force"),
        ({"lr": 1.0}, "lr: no keyword of work; did you mean learning_rate?"),
        ({"Learning-Rate": 1.0}, "Learning-Rate: no keyword of work; did you mean learning_rate?"),
        ({"zzz": 1}, "zzz: no keyword of work; expected some of source, out, names, share, rows, table, force, "),
        ({"x" * 3000: 1}, "x: no keyword of work; expected some of source"),
    ],
)
def test_what_a_function_does_not_take(arguments, message):
    with pytest.raises(InputError) as excinfo:
        work(**({"source": "a"} | arguments))
    assert message in str(excinfo.value)
    assert isinstance(excinfo.value, TypeError)
    assert "\n" not in str(excinfo.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"source": Path("a"), "out": Path("b")},
        {"names": ("a", "b"), "share": np.float32(0.5), "rows": np.int64(3)},
        {"names": np.array(["a"]), "share": 1, "force": np.bool_(False)},
        {"table": {"a": 1}, "learning_rate": 1.0},
    ],
)
def test_what_it_takes(arguments):
    assert work(**({"source": "a"} | arguments)) == arguments.get("source", "a")


def test_arguments_that_are_missing_or_too_many():
    with pytest.raises(ArgumentError, match="work: missing a required argument: 'source'"):
        work()
    with pytest.raises(ArgumentError, match="work: too many positional arguments, expected source; .* out, by keyword"):
        work("a", "b")


def test_a_method_does_not_offer_itself():
    class Thing:
        @named
        def __init__(self, first=1):
            self.first = first

    with pytest.raises(TypeError, match="second: no keyword of .*Thing; expected some of first"):
        Thing(second=2)
    assert list(inspect.signature(Thing).parameters) == ["first"]


PUBLIC = [
    (headsmith.train, {"features": 5, "out": "x"}, "features: 5 found, expected a path or a FeatureSet"),
    (headsmith.train, {"features": "x", "out": 5}, "out: 5 found, expected a path"),
    (headsmith.train, {"features": "x", "out": "y", "config": {}}, "config: {} found, expected a path or None"),
    (headsmith.train, {"features": "x", "out": "y", "epoch": 1}, "epoch: no keyword of train; did you mean epochs"),
    (headsmith.sweep, {"features": "x", "out": None}, "out: None found, expected a path"),
    (headsmith.sweep, {"features": "x", "out": "y", "configs": 1}, "configs: no keyword of sweep; did you mean config"),
    (headsmith.extract, {"images": "", "out": "y"}, "images: '' found, expected a path"),
    (headsmith.import_features, {"files": [5], "out": "y"}, r"files: \[5\] found, expected a path or a list of paths"),
    (headsmith.inspect_features, {"features": None}, "features: None found, expected a path or a FeatureSet"),
    (headsmith.FeatureSet.load, {"path": None}, "path: None found, expected a path"),
    (headsmith.Run.load, {"path": 3}, "path: 3 found, expected a path"),
    (headsmith.Sweep.load, {"path": ""}, "path: '' found, expected a path"),
    (headsmith.export_classifier, {"run": 3, "out": "y"}, "run: 3 found, expected a path or a Run"),
    (headsmith.export_classifier, {"run": "x", "out": "y", "format": "onnx"}, "format: no keyword of .*mean formats"),
    (headsmith.evaluate_classifiers, {"models": 5, "data": "y"}, "models: 5 found, expected a path or a Bundle or"),
    (headsmith.compare, {"first": "a", "second": "b", "result": "x"}, "result: no keyword of .*mean results"),
    (headsmith.predict, {"bundle": "x", "images": 5}, "images: 5 found, expected a list of paths"),
    (headsmith.write_report, {"results": 5}, "results: 5 found, expected a path or a Results"),
    (headsmith.verify, {"bundle": "x", "thread": 1}, "thread: no keyword of verify; did you mean threads"),
    (headsmith.graft, {"file": "x", "head": 5, "out": "y"}, "head: 5 found, expected a path or a Run"),
    (headsmith.file_info, {"path": None}, "path: None found, expected a path"),
    (headsmith.open_model, {"path": 5}, "path: 5 found, expected a path"),
    (headsmith.load_backbone, {"spec": 5}, "spec: 5 found, expected text"),
    (headsmith.push, {"bundle": "x", "repo": 5}, "repo: 5 found, expected text"),
    (headsmith.TopKCrossEntropy, {"metod": "softsort"}, "metod: no keyword of TopKCrossEntropy; did you mean method"),
    (headsmith.HeadClassifier, {"lr": 0.1}, "lr: no keyword of HeadClassifier; did you mean learning_rate"),
]


@pytest.mark.parametrize(("function", "arguments", "message"), PUBLIC)
def test_public_functions(function, arguments, message):
    with pytest.raises(TypeError, match=message) as excinfo:
        function(**arguments)
    assert isinstance(excinfo.value, InputError)


def test_a_misspelt_keyword_of_the_loss():
    with pytest.raises(TypeError, match="metod: no keyword of topk_cross_entropy; did you mean method"):
        headsmith.topk_cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1]), metod="softsort")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("SoftSort", "softsort"), ("odd-even", "odd_even"), ("lr", "learning_rate"), ("bs", "batch_size"), ("sdg", "sgd")],
)
def test_near(name, hint):
    known = ["softsort", "odd_even", "learning_rate", "batch_size", "sgd"]
    assert near(name, known) == (hint and f"; did you mean {hint}?")


@pytest.mark.parametrize("name", ["qqq", "out", "seed", "None", "tau"])
def test_nothing_is_near_what_was_not_mistyped(name):
    assert near(name, ["dropout", "select", "sinkhorn", "neuralsort", "start", "norm"]) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        ("a\x1bb", r"'a\x1bb'"),
        ({"a": 1}, "{'a': 1}"),
        (np.zeros(3), "a ndarray"),
        (object(), "an object"),
        pytest.param(10**6000, "a number of thousands of digits", id="digits"),
        (float("nan"), "nan"),
    ],
)
def test_shown(value, text):
    assert shown(value) == text


def test_long_texts_lose_their_middle():
    assert short("a" * 50 + "b" * 50, 11) == "aaaaa…bbbbb"
    assert len(shown("a" * 6000)) < 80
    assert short("short") == "short"
