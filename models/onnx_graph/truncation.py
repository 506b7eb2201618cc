"""Cut an ONNX classifier before its last layer."""

import onnx_ir as ir
from onnx_ir.passes.common import NameFixPass, RemoveUnusedNodesPass

from ...core.errors import InputError
from .last_layer import LastLayer
from .reading import only_input

IMAGES, FEATURES, BATCH = "images", "features", "batch"
IR_VERSION = 8  # before 4 every weight is an input too
NUMBERS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE, ir.DataType.UINT8)


def cut(model: ir.Model, layer: LastLayer, where: str) -> ir.Model:
    """The part of a classifier that computes the features its last layer takes.

    A pooling behind the layer is put before it. A batch axis of fixed size is freed, and so are the reshapes that
    repeat that size; whether that was right shows only when batches of other sizes are run.

    Args:
        model: The classifier; nodes are added to it.
        layer: Its last layer.
        where: The file, for errors.

    Returns:
        ``images`` float32, in the shape that the file takes, to ``features`` float32 ``(batch, D)``.

    Raises:
        InputError: Several inputs, or one that takes no numbers.
    """
    images = only_input(model, where)
    if images.dtype not in NUMBERS:
        raise InputError(f"{where}: input {images.name} takes {images.dtype}, expected float or uint8 pixels")
    features = _features(model.graph, layer)
    graph = ir.convenience.extract(model.graph, [images], [features])
    _free_batch(graph)
    _take_float32(graph)
    _give_float32(graph)
    part = ir.Model(graph, ir_version=max(model.ir_version, IR_VERSION))
    RemoveUnusedNodesPass()(part)
    NameFixPass()(part)  # an inner value may be called as the input or the output are
    return part


def _features(graph: ir.Graph, layer: LastLayer) -> ir.Value:
    """The layer's input, pooled and flat."""
    value = layer.inputs
    for pool in layer.pools:
        value = _append(graph, ir.Node("", pool.op_type, [value, *pool.inputs[1:]], pool.attributes.values()))
    if layer.node.op_type != "Gemm":
        value = _append(graph, ir.node("Flatten", [value], {"axis": 1}))
    return value


def _append(graph: ir.Graph, node: ir.Node) -> ir.Value:
    graph.append(node)
    return node.outputs[0]


def _free_batch(graph: ir.Graph) -> None:
    """Let axis 0 of the input have any size, and make reshapes to that fixed size follow it."""
    shape = graph.inputs[0].shape
    fixed = None if shape is None else shape[0]
    for node in graph:
        for value in node.outputs:
            value.shape = None
        if node.op_type == "Reshape" and isinstance(fixed, int):
            _follow_batch(graph, node, fixed)
    if shape is not None:
        graph.inputs[0].shape = ir.Shape([BATCH, *shape[1:]])


def _follow_batch(graph: ir.Graph, node: ir.Node, fixed: int) -> None:
    value = node.inputs[1]
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    sizes = [] if tensor is None else tensor.numpy().tolist()
    if sizes[:1] == [fixed] and node.inputs[0] not in graph.initializers.values():
        first = 0 if -1 in sizes else -1  # as the input has it, or what is left
        target = ir.tensor([first, *sizes[1:]], ir.DataType.INT64, name=f"{node.outputs[0].name}_shape")
        follow = ir.val(target.name, const_value=target)
        graph.register_initializer(follow)
        node.replace_input_with(1, follow)
        node.attributes.pop("allowzero", None)


def _take_float32(graph: ir.Graph) -> None:
    images = graph.inputs[0]
    kind, images.name = images.dtype, IMAGES
    if kind == ir.DataType.FLOAT:
        return
    taken = ir.val(IMAGES, ir.DataType.FLOAT, images.shape)
    cast = ir.node("Cast", [taken], {"to": kind})
    graph.inputs[0] = taken
    ir.convenience.replace_all_uses_with(images, cast.outputs[0])
    graph.insert_before(graph[0], cast)


def _give_float32(graph: ir.Graph) -> None:
    cast = ir.node("Cast", [graph.outputs[0]], {"to": ir.DataType.FLOAT})
    graph.append(cast)
    graph.outputs[0] = cast.outputs[0]
    cast.outputs[0].name = FEATURES
    cast.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
