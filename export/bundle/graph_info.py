"""What an ONNX graph says of itself."""

from typing import Any

import onnx_ir as ir

from ...core.errors import InputError
from ...models.onnx_graph import NOT_TENSORS, affine_weights, find_last_layer, parameter_count


def describe_graph(model: ir.Model, where: str) -> dict[str, Any]:
    """Inputs, outputs, operator sets, IR version, producer, parameters and last layer of a model, as JSON values."""
    graph = model.graph
    return {
        "inputs": [_value(value) for value in graph.inputs if not value.is_initializer()],
        "outputs": [*(_value(value) for value in graph.outputs), *_others(model)],
        "opsets": {domain or "ai.onnx": version for domain, version in model.opset_imports.items()},
        "ir_version": model.ir_version,
        "producer": " ".join(filter(None, (model.producer_name, model.producer_version))) or None,
        "parameters": parameter_count(model),
        "last_layer": _last_layer(model, where),
    }


def _value(value: ir.Value) -> dict[str, Any]:
    shape = None if value.shape is None else [size if isinstance(size, int) else str(size) for size in value.shape]
    return {"name": value.name, "dtype": None if value.dtype is None else value.dtype.name.lower(), "shape": shape}


def _others(model: ir.Model) -> list[dict[str, Any]]:
    return [{"name": name, "dtype": kind, "shape": None} for name, kind in model.meta[NOT_TENSORS].items()]


def _last_layer(model: ir.Model, where: str) -> dict[str, Any]:
    """What `find_last_layer` finds, or why it finds nothing."""
    try:
        layer = find_last_layer(model, where)
        weight, _ = affine_weights(model, layer, where)
    except InputError as error:
        return {"not_found": str(error)}
    return {
        "name": layer.name,
        "operator": layer.node.op_type,
        "features": weight.shape[1],
        "outputs": weight.shape[0],
        "softmaxes": layer.softmaxes,
    }
