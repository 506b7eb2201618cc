"""Put the graph of an ONNX backbone into the graph that torch's exporter wrote around its placeholder."""

import logging

import onnx_ir as ir
from onnxscript import version_converter

from ...core.errors import InputError
from ...models.onnx_backbone import PLACEHOLDER, PLACEHOLDER_DOMAIN, OnnxNetwork
from ..classifier import Classifier

PREFIX = "backbone."


def splice_backbone(host: ir.Model, classifier: Classifier) -> None:
    """Replace, in place, the placeholder of an ONNX backbone by its graph, brought to the operator set of the model.

    Args:
        host: What the exporter wrote.
        classifier: What it was written from; without an ONNX backbone the model stays as it is.

    Raises:
        InputError: The graph has an operator that cannot be brought to that operator set.
    """
    networks = [module for module in classifier.modules() if isinstance(module, OnnxNetwork)]
    if not networks:
        return
    part = _converted(networks[0].graph.clone(), host.opset_imports[""])
    for value in ir.convenience.create_value_mapping(part.graph, include_subgraphs=False).values():
        value.name = f"{PREFIX}{value.name}"
    for node in part.graph:
        node.name = f"{PREFIX}{node.name or node.outputs[0].name}"
    _insert(host, part)


def _converted(part: ir.Model, opset: int) -> ir.Model:
    ir.external_data.load_to_model(part)
    found = part.opset_imports.get("", 0)
    logger = logging.getLogger(version_converter.__name__)
    level = logger.level
    logger.setLevel(logging.ERROR)  # that it uses the converter of the onnx package is no news
    try:
        version_converter.convert_version(part, opset, fallback=True)
    finally:
        logger.setLevel(level)
    if part.opset_imports.get("", 0) != opset:
        raise InputError(
            f"--opset {opset}: the backbone's file has opset {found}, which cannot be brought to it; convert the file "
            f"first, or choose --opset {max(found, 18)}"
        )
    return part


def _insert(host: ir.Model, part: ir.Model) -> None:
    graph, inner = host.graph, part.graph
    placeholder = next(node for node in graph if (node.domain, node.op_type) == (PLACEHOLDER_DOMAIN, PLACEHOLDER))
    images, features, source = inner.inputs[0], inner.outputs[0], placeholder.inputs[0]
    assert source is not None  # noqa: S101 - a placeholder stands for one function of the images
    inner.inputs.clear()
    inner.outputs.clear()
    ir.convenience.replace_all_uses_with(images, source)
    for value in list(inner.initializers.values()):
        inner.initializers.pop(str(value.name))
        graph.register_initializer(value)
    nodes = list(inner)
    inner.remove(nodes)
    features.shape = placeholder.outputs[0].shape
    ir.convenience.replace_all_uses_with(placeholder.outputs[0], features)
    graph.insert_after(placeholder, nodes)
    graph.remove(placeholder)
    host.opset_imports.pop(PLACEHOLDER_DOMAIN)
    host.opset_imports.update({domain: version for domain, version in part.opset_imports.items() if domain})
