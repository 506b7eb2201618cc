"""Small ONNX classifiers of 3 classes on images of 2 x 2 pixels, as no exporter of ours writes them."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

WEIGHTS = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
FLATTEN, MATMUL = h.make_node("Flatten", ["x"], ["f"]), h.make_node("MatMul", ["f", "w"], ["logits"])
LOGITS = h.make_tensor_value_info("logits", T.FLOAT, ["N", 3])
OPSETS = (h.make_opsetid("", 17), h.make_opsetid("ai.onnx.ml", 3), h.make_opsetid("my", 1))


def model(nodes, weights=(), outputs=(LOGITS,), batch="N", functions=()):
    images = h.make_tensor_value_info("x", T.FLOAT, [batch, 3, 2, 2])
    graph = h.make_graph(nodes, "m", [images], list(outputs), list(weights))
    return h.make_model(graph, opset_imports=OPSETS, ir_version=9, functions=list(functions))


def plain(*nodes, outputs=(LOGITS,), batch="N"):
    return model([FLATTEN, MATMUL, *nodes], [numpy_helper.from_array(WEIGHTS, "w")], outputs, batch)


def batch_of(axis):
    """A file whose batch axis is written so."""
    return plain(outputs=[h.make_tensor_value_info("logits", T.FLOAT, [axis, 3])], batch=axis)


def zipmap(*beside):
    """What skl2onnx writes for classifiers: a list of a dictionary for each row."""
    nodes = [
        h.make_node("Softmax", ["logits"], ["p"]),
        h.make_node("ZipMap", ["p"], ["probabilities"], domain="ai.onnx.ml", classlabels_strings=["a", "b", "c"]),
        h.make_node("ArgMax", ["p"], ["label"], axis=1, keepdims=0),
    ]
    kind = h.make_map_type_proto(T.STRING, h.make_tensor_type_proto(T.FLOAT, []))
    maps = h.make_value_info("probabilities", h.make_sequence_type_proto(kind))
    known = {"logits": LOGITS, "label": h.make_tensor_value_info("label", T.INT64, ["N"])}
    return plain(*nodes, outputs=[*(known[name] for name in beside), maps])


def sequence():
    outputs = [h.make_tensor_sequence_value_info("s", T.FLOAT, None)]
    return plain(h.make_node("SequenceConstruct", ["logits"], ["s"]), outputs=outputs)


def optional():
    kind = h.make_optional_type_proto(h.make_tensor_type_proto(T.FLOAT, ["N", 3]))
    return plain(h.make_node("Optional", ["logits"], ["o"]), outputs=[h.make_value_info("o", kind)])


def beside(name="w", location="w.bin", offset="0", length=str(WEIGHTS.nbytes), shape=WEIGHTS.shape):
    """Weights that lie in a file."""
    tensor = T(name=name, data_type=T.FLOAT, dims=shape, data_location=T.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=value)
    return tensor


def _branch(name, constant, **where):
    out = [h.make_tensor_value_info(f"o_{name}", T.FLOAT, ["N", 3])]
    product = h.make_node("MatMul", ["f", f"w_{name}"], [f"o_{name}"])
    if constant:
        value = h.make_node("Constant", [], [f"w_{name}"], value=beside(**where))
        return h.make_graph([value, product], name, [], out)
    return h.make_graph([product], name, [], out, [beside(f"w_{name}", **where)])


def _either(constant, **where):
    yes = h.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True), "c"))
    branches = {f"{name}_branch": _branch(name, constant, **where) for name in ("then", "else")}
    return model([FLATTEN, yes, h.make_node("If", ["c"], ["logits"], **branches)])


def _function(**where):
    value = h.make_node("Constant", [], ["w"], value=beside(**where))
    body = [value, h.make_node("MatMul", ["a", "w"], ["b"])]
    head = h.make_function("my", "Head", ["a"], ["b"], body, [OPSETS[0]])
    return model([FLATTEN, h.make_node("Head", ["f"], ["logits"], domain="my")], functions=[head])


def _sparse(**where):
    places = numpy_helper.from_array(np.arange(WEIGHTS.size), "w_places")
    found = model([FLATTEN, MATMUL])
    found.graph.sparse_initializer.append(h.make_sparse_tensor(beside(shape=[WEIGHTS.size], **where), places, [12, 3]))
    return found


WEIGHTS_IN = {
    "initializer": lambda **where: model([FLATTEN, MATMUL], [beside(**where)]),
    "constant": lambda **where: model([FLATTEN, h.make_node("Constant", [], ["w"], value=beside(**where)), MATMUL]),
    "subgraph": lambda **where: _either(False, **where),
    "constant in a subgraph": lambda **where: _either(True, **where),
    "function": _function,
    "sparse": _sparse,
}


def save(proto: onnx.ModelProto, path: Path, weights: np.ndarray | None = WEIGHTS) -> Path:
    """Write a file, and its weights beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(proto.SerializeToString())
    if weights is not None:
        (path.parent / "w.bin").write_bytes(weights.tobytes())
    return path
