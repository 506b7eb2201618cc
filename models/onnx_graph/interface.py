"""Inputs and outputs that an ONNX file declares otherwise than a classifier's are."""

from onnx import ModelProto

from ...core.errors import InputError

LARGEST_BATCH = 2**16
NOT_TENSORS = "not_tensors"
_KINDS = {
    "sequence_type": "a sequence",
    "map_type": "a map",
    "optional_type": "optional",
    "sparse_tensor_type": "a sparse tensor",
    "opaque_type": "of a kind of its own",
}


def free_axes(model: ModelProto) -> bool:
    """Free axes of impossible sizes: below 1 (PaddlePaddle's exporter writes -1 for any), and a batch above 65,536.

    Args:
        model: Its inputs and outputs are changed.

    Returns:
        Whether there were any.
    """
    weights = {tensor.name for tensor in model.graph.initializer}
    found = False
    for value in (*model.graph.input, *model.graph.output):
        if value.name in weights:
            continue
        for place, axis in enumerate(value.type.tensor_type.shape.dim):
            if axis.HasField("dim_value") and not 0 < axis.dim_value <= (2**63 if place else LARGEST_BATCH):
                axis.Clear()
                found = True
    return found


def take_out_others(model: ModelProto, where: str) -> dict[str, str]:
    """Take outputs that are no tensors out of a model, and what it says of such values between its nodes.

    Args:
        model: Its outputs are changed.
        where: The file, for errors.

    Returns:
        The kinds of these outputs by their names.

    Raises:
        InputError: An input is no tensor, or no output is one.
    """
    graph = model.graph
    for value in graph.input:
        if kind := _other(value.type.WhichOneof("value")):
            raise InputError(f"{where}: input {value.name} is {kind}, expected a tensor of images")
    others = {
        value.name: kind for value in graph.output if (kind := _other(value.type.WhichOneof("value"))) is not None
    }
    if others and len(others) == len(graph.output):
        listed = ", ".join(f"{name} is {kind}" for name, kind in others.items())
        raise InputError(
            f"{where}: no output is a tensor ({listed}); export it with a tensor of scores (skl2onnx: zipmap=False)"
        )
    for values in (graph.output, graph.value_info):
        for place in reversed(range(len(values))):
            if _other(values[place].type.WhichOneof("value")):
                del values[place]
    return others


def _other(kind: str | None) -> str | None:
    return _KINDS.get(kind or "")
