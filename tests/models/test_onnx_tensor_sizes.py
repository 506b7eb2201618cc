"""A tensor with another number of numbers than its shape says is refused when a file is read."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from headsmith.core.errors import DamagedFileError, InputError
from headsmith.models.onnx_graph import affine_weights, find_last_layer, read_onnx
from headsmith.models.onnx_graph.tensor_sizes import check_size

TYPES = [  # those that both onnx and onnx_ir of these releases know
    kind
    for kind in TensorProto.DataType.values()
    if kind in list(ir.DataType) and kind not in (TensorProto.UNDEFINED, TensorProto.STRING)
]
GEMM = "(float[N,4] images) => (float[N,C] scores) { scores = Gemm<transB=1>(images, w, b) }"


@pytest.mark.parametrize("kind", TYPES, ids=TensorProto.DataType.Name)
@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("count", [0, 3, 6])
def test_what_onnx_writes_is_sound_and_anything_else_is_not(kind, raw, count):
    values = np.ones(count, helper.tensor_dtype_to_np_dtype(kind))
    tensor = numpy_helper.from_array(values, "w") if raw else helper.make_tensor("w", kind, (count,), values)
    assert tensor.data_type == kind and tensor.HasField("raw_data") == raw
    check_size(tensor, "w")
    for wrong in ([count + 16], [2, 2**40], [-1]):
        tensor.dims[:] = wrong
        with pytest.raises(DamagedFileError, match=r"^w: (shape|type \d+ and shape) "):
            check_size(tensor, "w")


def test_text_is_counted_by_texts():
    tensor = helper.make_tensor("w", TensorProto.STRING, (2,), ["a", "longer"])
    check_size(tensor, "w")
    tensor.dims[0] = 3
    with pytest.raises(DamagedFileError, match=r"shape \[3\], which takes 3 entries or bytes, but 2 are there"):
        check_size(tensor, "w")


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize(("where", "dims"), [("w", (5, 2)), ("w", (6, 4)), ("b", (4,)), ("b", (2**40, 2**40))])
def test_a_file_with_such_a_weight_is_refused_when_it_is_read(onnx_file, where, dims, beside):
    path = onnx_file(GEMM, w=(5, 4), b=(5,))
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.name == where:
            tensor.dims[:] = dims
    onnx.save_model(model, path, save_as_external_data=beside, location="w.bin", size_threshold=0)
    if beside and np.prod(dims, dtype=float) * 4 < 80:  # weights beside it may lie in room for more
        assert read_onnx(path)
        return
    with pytest.raises(DamagedFileError, match=rf"zoo\.onnx: weights '{where}': shape \[.* are there; download"):
        read_onnx(path)


MATMUL = "(float[N,4] images) => (float[N,C] scores) { scores = MatMul(images, w) }"
CONV = """(float[N,3,8,8] images) => (float[N,C] scores) {
    c = Conv<kernel_shape=[1,1]>(images, w, b) p = GlobalAveragePool(c) scores = Flatten(p) }"""
COMPUTED = """(float[N,4] images) => (float[N,C] scores) {
    v = Add(w, q) scores = Gemm<transB=1>(images, v, b) }"""
TEXTS = np.array([["a"] * 4] * 5, dtype=object)


@pytest.mark.parametrize(
    ("graph", "weights", "message"),
    [
        (GEMM, {"w": (5, 4), "b": (3,)}, r"weights of \(5, 4\) and bias of \(3,\), expected \(C, D\) and \(C,\)"),
        (GEMM, {"w": (5,), "b": (5,)}, r"weights of \(5,\) and bias"),
        (GEMM, {"w": TEXTS, "b": (5,)}, "w: no numbers .*could not convert"),
        (MATMUL, {"w": (2, 4, 5)}, r"weights of \(5, 4, 2\) and bias"),
        (CONV, {"w": (5, 3, 3, 3), "b": (5,)}, r"weights of \(3, 3, 3, 5\) and bias"),
        (COMPUTED, {"w": (5, 4), "q": (3, 4), "b": (5,)}, "cannot open it|no numbers"),
    ],
    ids=["bias", "vector", "text", "three axes", "kernel", "computed"],
)
def test_weights_that_no_layer_can_have_are_refused(onnx_file, graph, weights, message):
    path = onnx_file(graph, **weights)
    model = read_onnx(path)
    layer = find_last_layer(model, str(path))
    with pytest.raises(InputError, match=message) as caught:
        affine_weights(model, layer, "zoo.onnx")
    assert "\n" not in str(caught.value)
