"""Numbers of an ONNX graph that are not weights of its own: those of functions, attributes and subgraphs."""

from pathlib import Path

import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

TENSORS = (ir.AttributeType.TENSOR, ir.AttributeType.TENSORS)


def settle(model: ir.Model, folder: Path) -> None:
    """Put functions where they are called, and numbers of attributes and subgraphs that lie beside the file in memory.

    What is left beside the file are weights of the graph itself, so that a part of the graph is hashed, run and
    written with all that it needs.

    Args:
        model: Is changed.
        folder: Where external data lie.
    """
    for function in model.functions.values():
        for node in ir.traversal.RecursiveGraphIterator(function.graph):
            _load_attributes(node, folder)
    if model.functions:
        InlinePass()(model)
    ir.external_data.set_base_dir(model.graph, folder)
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        _load_attributes(node, folder)
    for graph in model.graphs():
        if graph is not model.graph:
            for value in graph.initializers.values():
                if isinstance(value.const_value, ir.ExternalTensor):
                    value.const_value = _loaded(value.const_value, folder)


def _load_attributes(node: ir.Node, folder: Path) -> None:
    for name, attribute in list(node.attributes.items()):
        if attribute.is_ref() or attribute.type not in TENSORS:
            continue
        tensors = [attribute.value] if attribute.type == ir.AttributeType.TENSOR else list(attribute.value)
        if any(isinstance(tensor, ir.ExternalTensor) for tensor in tensors):
            loaded = [_loaded(tensor, folder) for tensor in tensors]
            value = loaded[0] if attribute.type == ir.AttributeType.TENSOR else loaded
            node.attributes[name] = ir.Attr(name, attribute.type, value)


def _loaded(tensor: ir.TensorProtocol, folder: Path) -> ir.TensorProtocol:
    if not isinstance(tensor, ir.ExternalTensor):
        return tensor
    tensor.base_dir = folder
    return ir.external_data.convert_tensors_from_external([tensor])[0]
