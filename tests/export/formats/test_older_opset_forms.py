"""Forms that readers of opset 17 know answer as what they replace; what has none stays."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

from headsmith.export.formats.older_opset_forms import write_older_forms

SHAPE = (2, 3, 4, 5)


def graph(body: str, shape: tuple[int | str, ...] = SHAPE, kind: str = "float", outputs: str = "y") -> onnx.ModelProto:
    dims, results = ",".join(map(str, shape)), ",".join(f"{kind}[] {output}" for output in outputs)
    text = f'<ir_version: 10, opset_import: ["" : 18]> net ({kind}[{dims}] x) => ({results}) {{ {body} }}'
    model = onnx.parser.parse_model(text)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return onnx.shape_inference.infer_shapes(model)


def mean(axes: list[int], keepdims: int = 1) -> str:
    listed = ",".join(map(str, axes))
    return f"a = Constant<value = int64[{len(axes)}] {{{listed}}}>() y = ReduceMean<keepdims={keepdims}>(x, a)"


def rewritten(model: onnx.ModelProto) -> onnx.ModelProto:
    found = ir.from_proto(model)
    write_older_forms(found)
    return ir.to_proto(found)


def answer(model: onnx.ModelProto, x: np.ndarray, output: int = 0) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[output]


def newer_than_17(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node if onnx.defs.get_schema(node.op_type, 18).since_version > 17}


def of(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        *((SHAPE, axes) for axes in ([2, 3], [-1, -2], [1, 2], [3, 1], [0, 1], [1], [-1], [1, 2, 3], [0, 1, 2, 3])),
        *(((2, 3, 4), axes) for axes in ([1], [-1], [0, 2])),
        *(((2, 3), axes) for axes in ([1], [0])),
        ((2, 3, 4, 5, 6), [1, 3, 4]),
        ((2, 3, 1, 2, 1, 2), [2, 3, 4, 5]),
    ],
    ids=str,
)
def test_a_mean(shape, axes, keepdims):
    x, old = of(shape), graph(mean(axes, keepdims), shape)
    new = rewritten(old)
    assert newer_than_17(old) == {"ReduceMean"}
    assert not newer_than_17(new)
    onnx.checker.check_model(new, full_check=True)
    found = answer(new, x)
    assert found.shape == answer(old, x).shape
    np.testing.assert_allclose(found, x.astype(np.float64).mean(tuple(axes), keepdims=bool(keepdims)), atol=1e-6)


@pytest.mark.parametrize("axes", [[2, 3], [1], [1, 2, 3]], ids=str)
def test_a_mean_takes_any_batch_and_says_what_is_not_finite(axes):
    """float32's sum of numbers near its largest overflows in either form."""
    x = of((7, 3, 4, 5))
    for row, bad in enumerate((np.nan, np.inf, -np.inf, 3e38)):
        x[row, :, 1:3, 1:3] = bad
    old = graph(mean(axes), ("batch", 3, 4, 5))
    new = rewritten(old)
    assert not newer_than_17(new)
    for n in (1, 2, 7):
        np.testing.assert_allclose(answer(new, x[:n]), answer(old, x[:n]), atol=1e-6)


@pytest.mark.parametrize(
    ("split", "sizes"),
    [
        ("s = Constant<value = int64[2] {1, 3}>() y, z = Split<axis=2>(x, s)", [1, 3]),
        ("s = Constant<value = int64[2] {5, 0}>() y, z = Split<axis=-1>(x, s)", [5, 0]),
        ("y, z = Split<axis=1, num_outputs=2>(x)", [2, 1]),
    ],
)
def test_a_split(split, sizes):
    x, old = of((7, 3, 4, 5)), graph(split, ("batch", 3, 4, 5), outputs="yz")
    new = rewritten(old)
    assert newer_than_17(old) == {"Split"}
    assert not newer_than_17(new)
    onnx.checker.check_model(new, full_check=True)
    for output in range(2):
        found = answer(new, x, output)
        np.testing.assert_array_equal(found, answer(old, x, output))
        assert sizes[output] in found.shape


@pytest.mark.parametrize(
    "model",
    [
        graph(mean([2, 3]), kind="int32"),
        graph(mean([1, 2]), ("batch", 3, "w")),
        graph(mean([2]), ("batch", "h", 3, 4)),
        graph("y = ReduceMean(x)"),
        graph("s = Shape(x) a = Shape(s) y = ReduceMean(x, a)", (2, 3, 4, 5, 6)),
        graph("s = Shape(x) y, z = Split<axis=1>(x, s)", (1, 2), outputs="yz"),
        graph("y, z = Split<num_outputs=2>(x)", ("batch", 2), outputs="yz"),
    ],
    ids=["integers", "free number", "two free axes", "no axes", "computed axes", "computed sizes", "batch in halves"],
)
def test_what_has_no_older_form_stays(model):
    assert [node.op_type for node in rewritten(model).graph.node] == [node.op_type for node in model.graph.node]


@pytest.mark.parametrize(("shape", "said"), [([-1, 15], False), ([2, -1], False), ([0, 60], True)])
def test_zeros_are_told_only_of_a_shape_that_has_them(shape, said):
    listed = ",".join(map(str, shape))
    old = graph(f"s = Constant<value = int64[2] {{{listed}}}>() y = Reshape<allowzero=1>(x, s)")
    (reshape,) = (node for node in rewritten(old).graph.node if node.op_type == "Reshape")
    assert [attribute.name for attribute in reshape.attribute] == ["allowzero"] * said
