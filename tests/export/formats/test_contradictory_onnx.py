"""ONNX files that open and cannot run, or of whose mistakes onnxruntime cannot tell: one line, never its exception."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from headsmith.core.errors import InputError
from headsmith.export import Classifier, file_info, open_model
from headsmith.export.formats.onnx_format import write_onnx
from headsmith.export.formats.onnx_runtime import SessionRunner
from headsmith.export.metadata import Metadata, identity
from headsmith.models.execution_provider import CPU
from headsmith.models.heads import Linear
from headsmith.models.onnx_session import open_session

ABOUT = Metadata(tuple("abcdef"), "features", None, identity(None, 8), "feature set")
FEATURES = np.ones((3, 8), np.float32)


@pytest.fixture
def exported(tmp_path):
    write_onnx(Classifier(Linear(8, 6)), ABOUT, tmp_path / "model.onnx", opset=18)
    return tmp_path / "model.onnx"


@pytest.mark.parametrize(("operator", "value"), [("Gather", [10**6]), ("Add", [[1.0] * 8] * 5), ("Reshape", [7, 8])])
def test_a_graph_that_contradicts_itself_is_refused_when_it_runs(exported, operator, value):
    model = onnx.load(exported)
    for node in model.graph.node:
        node.input[:] = ["seen" if name == "features" else name for name in node.input]
    model.graph.node.insert(0, helper.make_node(operator, ["features", "other"], ["seen"]))
    constant = np.array(value, np.float32 if operator == "Add" else np.int64)
    model.graph.initializer.append(numpy_helper.from_array(constant, "other"))
    onnx.save(model, exported)
    opened = open_model(exported, threads=1)
    with pytest.raises(InputError, match=r"model\.onnx: cannot run inputs of \(3, 8\) under onnxruntime \(") as caught:
        opened.run(FEATURES)
    assert "\n" not in str(caught.value)


def test_inputs_that_a_graph_does_not_take_are_named(onnx_file):
    path = onnx_file("(float[N,3] x) => (float[N,2] y) <float[3,2] W> { y = MatMul(x, W) }", W=(3, 2))
    runner = SessionRunner(open_session(path, CPU, 1, name="x"), CPU, name="zoo.onnx")
    with pytest.raises(InputError, match=r"zoo\.onnx: cannot run inputs of \(2, 5\)"):
        runner.run(["y"], {"x": np.ones((2, 5), np.float32)})
    with pytest.raises(InputError, match=r"zoo\.onnx: cannot run inputs of \(2, 3\)"):
        runner.run(["z"], {"x": np.ones((2, 3), np.float32)})


@pytest.mark.parametrize("place", [b"features", b"Gemm"])
@pytest.mark.parametrize("byte", [b"\x92", b"\xee", b"\xff"])
def test_text_that_is_not_utf_8_in_an_error_of_onnxruntime(exported, place, byte):
    content = exported.read_bytes()
    assert place in content
    exported.write_bytes(content.replace(place, byte + place[1:], 1))
    for read in (open_model, file_info):
        with pytest.raises(InputError, match=r"model\.onnx: ") as caught:
            read(exported)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, '{"a": ' * 50_000])
def test_metadata_that_no_parser_takes_are_shown_as_text(onnx_file, text):
    path = onnx_file("(float[N,3] x) => (float[N,2] y) { y = MatMul(x, W) }", W=(3, 2))
    model = onnx.load(path)
    helper.set_model_props(model, {"made": text})
    onnx.save(model, path)
    assert file_info(path).metadata == {"made": text}
