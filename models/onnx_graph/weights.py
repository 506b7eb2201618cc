"""The numbers in an ONNX file that no input changes."""

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from ...core.errors import DamagedFileError, InputError
from ..execution_provider import CPU
from ..onnx_session import SessionErrors, open_session, short_reason
from .last_layer import LastLayer

Array = np.ndarray[Any, Any]
NOT_READ: tuple[type[Exception], ...] = (*SessionErrors, TypeError, OSError)


def affine_weights(model: ir.Model, layer: LastLayer, where: str) -> tuple[Array, Array]:
    """The last layer as ``features @ weight.T + bias``.

    Args:
        model: The classifier.
        layer: Its last layer.
        where: The file, for errors.

    Returns:
        Weights ``(C, D)`` and bias ``(C,)``, float32.

    Raises:
        DamagedFileError: They are no numbers, or of shapes that the layer cannot have.
    """
    node, attributes = layer.node, layer.node.attributes
    weight = _numbers(model, layer.weight, where)
    if node.op_type == "Conv" and weight.shape[2:] == (1, 1):
        weight = weight[:, :, 0, 0]
    elif not (node.op_type == "Gemm" and attributes.get_int("transB")):
        weight = weight.T
    bias = np.zeros(1, np.float32) if layer.bias is None else _numbers(model, layer.bias, where).reshape(-1)
    if weight.ndim != 2 or len(bias) not in (1, len(weight)):
        raise DamagedFileError(
            f"{where}: layer {layer.name}: weights of {weight.shape} and bias of {bias.shape}, expected (C, D) and "
            "(C,); export it again"
        )
    bias = np.broadcast_to(bias, len(weight))
    if node.op_type == "Gemm":
        weight, bias = weight * attributes.get_float("alpha", 1.0), bias * attributes.get_float("beta", 1.0)
    return np.ascontiguousarray(weight), np.array(bias)


def _numbers(model: ir.Model, value: ir.Value, where: str) -> Array:
    """A constant in float32."""
    try:
        with np.errstate(over="ignore"):  # of float64
            return constant(model, value).astype(np.float32)
    except InputError:
        raise
    except NOT_READ as error:
        raise DamagedFileError(f"{where}: {value.name}: no numbers ({short_reason(error)}); export it again") from None


def constant(model: ir.Model, value: ir.Value) -> Array:
    """The values of a constant, computed where the file computes it from others."""
    if value.const_value is not None:
        return value.const_value.numpy()
    graph = ir.convenience.extract(model.graph, [], [value])
    part = ir.to_proto(ir.Model(graph, ir_version=model.ir_version)).SerializeToString()
    folder = data_folder(model)
    (found,) = open_session(part, CPU, 1, name=str(value.name), data_folder=folder).run(None, {})
    return np.asarray(found)


def data_folder(model: ir.Model) -> Any:
    """The folder of the external data; ``None`` where all weights are in the file."""
    external = [value.const_value for value in model.graph.initializers.values()]
    return next((tensor.base_dir for tensor in external if isinstance(tensor, ir.ExternalTensor)), None)


def parameter_count(model: ir.Model) -> int:
    """How many numbers the floating-point weights hold, those that are nodes (PaddlePaddle's exporter) among them."""
    constants = [node.outputs[0] for node in model.graph if node.op_type == "Constant"]
    tensors = map(ir.convenience.get_const_tensor, (*model.graph.initializers.values(), *constants))
    return sum(
        math.prod(tensor.shape.numpy()) for tensor in tensors if tensor is not None and tensor.dtype.is_floating_point()
    )
