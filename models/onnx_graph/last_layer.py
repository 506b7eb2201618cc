"""Find the layer of an ONNX classifier that turns features into scores of classes."""

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from ...core.errors import InputError, near

SOFTMAXES = ("Softmax", "LogSoftmax")
POOLS = ("GlobalAveragePool", "AveragePool", "ReduceMean")
CAST = "Cast"
SHAPE_ONLY = ("Flatten", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Transpose", "Dropout", CAST)
BEHIND = {"Add": "MatMul", "Relu": "Conv"}  # only there: a bias, and SqueezeNet's activation of the scores
LISTED, SPARSE = 6, "sparse"
KNOWN = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")  # onnx's own domains, and onnxruntime's


@dataclass(frozen=True)
class LastLayer:
    """A layer with constant weights, and what follows it.

    Attributes:
        node: ``Gemm``, ``MatMul`` or a 1x1 ``Conv``.
        weight: Its constant weights.
        bias: Its constant bias, also where that is a node of its own; ``None`` for none.
        tail: The nodes between it and the output, in order.
    """

    node: ir.Node
    weight: ir.Value
    bias: ir.Value | None
    tail: tuple[ir.Node, ...]

    @property
    def name(self) -> str:
        """Its name in the file; of a node without one the name of its output."""
        return node_name(self.node)

    @property
    def inputs(self) -> ir.Value:
        """What it takes: features, perhaps before pooling."""
        value = self.node.inputs[0]
        assert value is not None  # noqa: S101 - these operators have it
        return value

    @property
    def pools(self) -> tuple[ir.Node, ...]:
        """The poolings behind it (SqueezeNet's), which move before it: a mean of sums is the sum of means."""
        return tuple(node for node in self.tail if node.op_type in POOLS)

    @property
    def softmaxes(self) -> int:
        """How often a softmax is taken behind it: 0 where the file gives logits."""
        return sum(node.op_type in SOFTMAXES for node in self.tail)

    @property
    def is_affine(self) -> bool:
        """Whether its weights and bias are all that happens to pooled features before a softmax."""
        harmless = (*SOFTMAXES, *POOLS, *SHAPE_ONLY, "Add")
        return all(node.op_type in harmless for node in self.tail)


def find_last_layer(model: ir.Model, where: str, name: str | None = None) -> LastLayer:
    """Find the last layer.

    From each output (only ``logits`` where there is one of that name) the graph is followed back through softmax,
    pooling and reshapes to a ``Gemm``, a ``MatMul`` (with the ``Add`` of a bias), or a 1x1 ``Conv``.

    Args:
        model: The classifier.
        where: The file, for errors.
        name: The layer, where the caller knows better.

    Raises:
        InputError: None is found, or outputs lead to several, or none of that name: candidates are listed. Or weights
            are sparse.
    """
    if model.meta.get(SPARSE):
        raise InputError(f"{where}: has sparse weights, so that it cannot be cut; export it with dense ones")
    variable = _variable(model)
    layers = {node_name(node): node for node in model.graph if _is_linear(node, variable)}
    if not layers:
        raise InputError(
            f"{where}: {_foreign(model)}has no Gemm, MatMul or 1x1 Conv with constant weights, before which it could "
            "be cut; take a classifier that ends with one"
        )
    if name is not None:
        if name not in layers:
            raise InputError(f"{where}: --layer {name}: no such layer{near(name, layers)}; {_candidates(layers)}")
        return _layer(layers[name], variable)
    named = [value for value in model.graph.outputs if value.name == "logits"]
    reached = [_walk_back(value, variable) for value in named or model.graph.outputs]
    ends = {node_name(node): node for node in reached if node is not None}
    found = [name for name in ends if name in layers]
    if len(found) != 1:
        what = f"{len(found)} layers could be the last one" if found else "no last layer was recognised"
        listed = {name: layers[name] for name in found} or layers
        raise InputError(f"{where}: {what}; name it with --layer: {_candidates(listed)}")
    return _layer(layers[found[0]], variable)


def node_name(node: ir.Node) -> str:
    """A node's name, or its first output's."""
    return node.name or str(node.outputs[0].name)


def _variable(model: ir.Model) -> set[ir.Value]:
    """The values that depend on the input."""
    found = {value for value in model.graph.inputs if not value.is_initializer()}
    for node in model.graph:
        if any(value in found for value in node.inputs):
            found.update(node.outputs)
    return found


def _is_linear(node: ir.Node, variable: set[ir.Value]) -> bool:
    if node.op_type not in ("Gemm", "MatMul", "Conv") or len(node.inputs) < 2:
        return False
    constants = [value for value in node.inputs[1:] if value is not None]
    if node.inputs[0] not in variable or any(value in variable for value in constants):
        return False
    if node.op_type == "Gemm":
        return not node.attributes.get_int("transA", 0)
    return node.op_type == "MatMul" or _is_pointwise(node)


def _is_pointwise(node: ir.Node) -> bool:
    shape = node.inputs[1].shape if node.inputs[1] is not None else None
    kernel = node.attributes.get_ints("kernel_shape", shape.numpy()[2:] if shape is not None else ())
    return (
        tuple(kernel) == (1, 1)
        and node.attributes.get_int("group", 1) == 1
        and set(node.attributes.get_ints("strides", (1,))) == {1}
        and set(node.attributes.get_ints("pads", (0,))) == {0}
    )


def _walk_back(value: ir.Value, variable: set[ir.Value]) -> ir.Node | None:
    """The first node, from an output on, that is no softmax, pooling, reshape or bias."""
    node, expected = value.producer(), None
    while node is not None and node.op_type in (*SOFTMAXES, *POOLS, *SHAPE_ONLY, *BEHIND):
        producers = [value.producer() for value in node.inputs if value in variable]
        if len(producers) != 1 or producers[0] is None:
            return None
        if node.op_type != CAST:  # half precision casts between a product and its bias
            expected = BEHIND.get(node.op_type)
        node = producers[0]
        if expected and node.op_type not in (expected, CAST):
            return None
    return node


def _layer(node: ir.Node, variable: set[ir.Value]) -> LastLayer:
    tail = tuple(_tail(node.outputs[0]))
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    behind = next((one for one in tail if one.op_type != CAST), None)
    if node.op_type == "MatMul" and behind and behind.op_type == "Add":
        bias = next((value for value in behind.inputs if value not in variable), None)
    weight = node.inputs[1]
    assert weight is not None  # noqa: S101 - `_is_linear` saw it
    return LastLayer(node, weight, bias, tail)


def _tail(value: ir.Value) -> Iterator[ir.Node]:
    """The chain of nodes from a value to an output of the graph."""
    while not value.is_graph_output() and value.consumers():
        node = value.consumers()[0]
        yield node
        value = node.outputs[0]


def _foreign(model: ir.Model) -> str:
    """The operators that onnx does not know, in words to go on with."""
    names = {f"{node.domain}.{node.op_type}": None for node in model.graph if node.domain not in KNOWN}
    return f"has operators that onnxruntime does not know ({', '.join(list(names)[:LISTED])}), and " if names else ""


def _candidates(layers: dict[str, ir.Node]) -> str:
    last = list(layers.items())[-LISTED:]
    return ", ".join(f"{name} ({_describe(node)})" for name, node in last)


def _describe(node: ir.Node) -> str:
    shape = node.inputs[1].shape if node.inputs[1] is not None else None
    return node.op_type if shape is None else f"{node.op_type} with weights {'x'.join(map(str, shape))}"
