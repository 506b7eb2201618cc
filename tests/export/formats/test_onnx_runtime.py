"""Bound buffers give what a fresh session gives, for batches of any size; nodes are counted by provider."""

import numpy as np
import onnxruntime
import pytest

from headsmith.export.formats.node_placement import misplaced_nodes, nodes_by_provider
from headsmith.export.formats.onnx_runtime import SessionRunner
from headsmith.models.execution_provider import CPU
from headsmith.models.onnx_session import open_session


@pytest.fixture(scope="module")
def file(onnx_file):
    graph = """(float[N,3] x) => (float[N,2] y, float[N,2] z, int64[2] s) <float[3,2] W> {
        y = MatMul(x, W)
        z = Softmax<axis=1>(y)
        s = Shape(y)
    }"""
    return onnx_file(graph, W=(3, 2))


class Bound(SessionRunner):
    """Binds buffers on the CPU too."""

    def __init__(self, session):
        super().__init__(session, CPU, name="x")
        self._binding = session.io_binding()


def test_batches_of_other_sizes(file):
    bound = Bound(open_session(file, CPU, 1, name="x"))
    fresh = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    random, kept = np.random.default_rng(0), []
    for size in (8, 3, 3, 8, 1):
        x = random.normal(size=(size, 3)).astype(np.float32)
        kept.append((bound.run(["z", "y"], {"x": x}), fresh.run(["z", "y"], {"x": x})))
    for found, expected in kept:  # only now: no answer is changed by a later run
        for one, two in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, two)


def test_outputs_may_change_from_run_to_run(file):
    bound = Bound(open_session(file, CPU, 1, name="x"))
    x = np.ones((2, 3), np.float32)
    assert len(bound.run(["y", "z"], {"x": x})) == 2
    (shape,) = bound.run(["s"], {"x": x})
    assert shape.tolist() == [2, 2]


def test_nodes_are_counted(file):
    session = open_session(file, CPU, 1, name="x")
    assert nodes_by_provider(session) == {"CPUExecutionProvider": 3}
    assert misplaced_nodes(session, file) == []


def test_arithmetic_of_shapes_is_not_misplaced(file, monkeypatch):
    """A session that claims another first provider: all its nodes are elsewhere."""
    session = open_session(file, CPU, 1, name="x")
    monkeypatch.setattr(session, "get_providers", lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert misplaced_nodes(session, file) == ["MatMul", "Softmax"]
