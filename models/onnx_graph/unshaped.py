"""Inputs and outputs that say nothing of their shape: onnx's checker refuses them, onnxruntime finds it by itself."""

from collections.abc import Iterator
from pathlib import Path

import onnx

from .external import tensors_of


def check_model(model: onnx.ModelProto, path: Path) -> None:
    """What `onnx.checker.check_model` says of a model, shapes that its inputs and outputs lack aside.

    Args:
        model: The model; its external data were checked.
        path: Its file.

    Raises:
        onnx.checker.ValidationError: It is not valid.
    """
    if not any(_unshaped(model)):
        onnx.checker.check_model(str(path))  # by path: a model in memory may have 2 GB at most
        return
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in _unshaped(copy):
        value.type.tensor_type.shape.SetInParent()
    for tensor in tensors_of(copy):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:  # which the checker would look for in this folder
            tensor.CopyFrom(onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=[0]))
    onnx.checker.check_model(copy)


def _unshaped(model: onnx.ModelProto) -> Iterator[onnx.ValueInfoProto]:
    for value in (*model.graph.input, *model.graph.output):
        if value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape"):
            yield value
