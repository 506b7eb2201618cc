"""The numbers in an ONNX file that no input changes."""

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from ..onnx_session import open_session
from .last_layer import LastLayer

Array = np.ndarray[Any, Any]


def affine_weights(model: ir.Model, layer: LastLayer) -> tuple[Array, Array]:
    """The last layer as ``features @ weight.T + bias``.

    Returns:
        Weights ``(C, D)`` and bias ``(C,)``, float32.
    """
    node, attributes = layer.node, layer.node.attributes
    weight = constant(model, layer.weight).astype(np.float32)
    if node.op_type == "Conv":
        weight = weight.reshape(weight.shape[:2])
    elif not (node.op_type == "Gemm" and attributes.get_int("transB")):
        weight = weight.T
    bias = np.zeros(len(weight), np.float32)
    if layer.bias is not None:
        bias = np.broadcast_to(constant(model, layer.bias).astype(np.float32).reshape(-1), len(weight))
    if node.op_type == "Gemm":
        weight, bias = weight * attributes.get_float("alpha", 1.0), bias * attributes.get_float("beta", 1.0)
    return np.ascontiguousarray(weight), np.array(bias)


def constant(model: ir.Model, value: ir.Value) -> Array:
    """The values of a constant, computed where the file computes it from others."""
    if value.const_value is not None:
        return value.const_value.numpy()
    graph = ir.convenience.extract(model.graph, [], [value])
    part = ir.to_proto(ir.Model(graph, ir_version=model.ir_version)).SerializeToString()
    folder = data_folder(model)
    (found,) = open_session(part, "cpu", 1, name=str(value.name), data_folder=folder).run(None, {})
    return np.asarray(found)


def data_folder(model: ir.Model) -> Any:
    """The folder of the external data; ``None`` where all weights are in the file."""
    external = [value.const_value for value in model.graph.initializers.values()]
    return next((tensor.base_dir for tensor in external if isinstance(tensor, ir.ExternalTensor)), None)


def parameter_count(model: ir.Model) -> int:
    """How many numbers the floating-point weights hold."""
    tensors = [value.const_value for value in model.graph.initializers.values()]
    return sum(
        math.prod(tensor.shape.numpy()) for tensor in tensors if tensor is not None and tensor.dtype.is_floating_point()
    )
