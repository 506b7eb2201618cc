"""Write operators in forms that readers of older operator sets know, where that changes nothing."""

from math import prod

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

LEFT = 2  # axes that a GlobalAveragePool leaves
MAX_AVERAGED = 3  # axes that onnxruntime averages in one pooling
FLOATS = (ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)
Step = tuple[str, list[list[int]], dict[str, int | list[int]]]  # operator, constant inputs, attributes


def write_older_forms(model: ir.Model) -> None:
    """Replace, in place, what only readers of opset 18 know by what older ones know too.

    A ReduceMean, of which opset 18 has a form of its own, becomes a GlobalAveragePool, which is as old as ONNX: axes to
    average are turned to the end; where they leave other than two, a Reshape makes these two, and another one gives
    the result its shape. It stays where its type, its axes or such a shape are unknown. A Split becomes a Slice for
    each part where the sizes of the parts are known. A Reshape says nothing of zeros where its shape has none.

    ReduceL2 stays: the squares whose sum would take its place leave the range of float16 long before it does.
    """
    for node in list(model.graph):
        if (node.domain, node.op_type) == ("", "ReduceMean"):
            _pool(model.graph, node)
        elif (node.domain, node.op_type) == ("", "Split"):
            _slice(model.graph, node)
        elif (node.domain, node.op_type) == ("", "Reshape"):
            shape = _constant(node.inputs[1])
            if shape is not None and 0 not in shape:
                node.attributes.pop("allowzero", None)
    RemoveUnusedNodesPass()(model)


def _constant(value: ir.Value | None) -> list[int] | None:
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy().tolist()


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _dims(value: ir.Value | None) -> list[int] | None:
    """The shape of a value, -1 for a free axis; ``None`` where it is unknown."""
    if value is None or value.shape is None:
        return None
    return [dim if isinstance(dim, int) else -1 for dim in value.shape]


def _pool(graph: ir.Graph, node: ir.Node) -> None:
    source, dims, axes = node.inputs[0], _dims(node.inputs[0]), _constant(_input(node, 1))
    if source is None or dims is None or not axes or source.dtype not in FLOATS:
        return
    averaged = sorted(axis % len(dims) for axis in axes)
    left = [axis for axis in range(len(dims)) if axis not in averaged]
    order = [*left, *averaged]
    keep = node.attributes.get_int("keepdims", 1)
    turn: list[Step] = [] if order == sorted(order) else [("Transpose", [], {"perm": order})]
    steps: list[Step]
    if len(left) == LEFT and len(averaged) <= MAX_AVERAGED:
        steps = [*turn, ("GlobalAveragePool", [], {})]
        if not keep:
            steps.append(("Flatten", [], {"axis": 1}))
        elif turn:
            steps.append(("Transpose", [], {"perm": [order.index(axis) for axis in range(len(dims))]}))
    else:
        count = prod(dims[axis] for axis in averaged)
        result = [1 if axis in averaged else dim for axis, dim in enumerate(dims) if keep or axis in left]
        if any(dims[axis] < 1 for axis in averaged) or 0 in result or result.count(-1) > 1:
            return
        steps = [*turn, ("Reshape", [[-1, 1, count]], {}), ("GlobalAveragePool", [], {}), ("Reshape", [result], {})]
    _replace(graph, node, [_chain(graph, source, steps, str(node.outputs[0].name))])


def _slice(graph: ir.Graph, node: ir.Node) -> None:
    source, sizes, axis = node.inputs[0], _sizes(node), node.attributes.get_int("axis", 0)
    if source is None or sizes is None:
        return
    ends = np.cumsum(sizes).tolist()
    parts = zip(node.outputs, [0, *ends[:-1]], ends, strict=True)
    slices = [([[start], [end], [axis]], str(output.name)) for output, start, end in parts]
    _replace(graph, node, [_chain(graph, source, [("Slice", where, {})], name) for where, name in slices])


def _sizes(node: ir.Node) -> list[int] | None:
    """The sizes of the parts of a Split; ``None`` where they are not known."""
    if _input(node, 1) is not None:
        return _constant(node.inputs[1])
    dims, parts = _dims(node.inputs[0]), len(node.outputs)
    size = -1 if dims is None else dims[node.attributes.get_int("axis", 0)]
    part = -(-size // parts)
    return None if size < 0 else [min(part, size - part * place) for place in range(parts)]


def _chain(graph: ir.Graph, value: ir.Value, steps: list[Step], name: str) -> list[ir.Node]:
    """Nodes, not yet in the graph, of which each takes the result of the one before it."""
    nodes = []
    for place, (operator, constants, attributes) in enumerate(steps):
        inputs = [value]
        for index, constant in enumerate(constants):
            inputs.append(ir.Value(name=f"{name}.{place}.{index}", const_value=ir.tensor(np.array(constant, np.int64))))
            graph.register_initializer(inputs[-1])
        value = ir.Value(name=f"{name}.{place}")
        nodes.append(ir.node(operator, inputs, attributes, name=value.name, outputs=[value]))
    return nodes


def _replace(graph: ir.Graph, node: ir.Node, chains: list[list[ir.Node]]) -> None:
    nodes = [made for chain in chains for made in chain]
    results = [chain[-1].outputs[0] for chain in chains]
    ir.convenience.replace_nodes_and_values(graph, node, [node], nodes, node.outputs, results)
