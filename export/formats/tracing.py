"""The graph of a classifier as torch's exporter traces it, with the graph of an ONNX backbone in its place."""

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import onnx
import onnx_ir as ir
import torch
from onnxscript import version_converter

from ...core.errors import InputError
from ...models.onnx_backbone import PLACEHOLDER, PLACEHOLDER_DOMAIN, OnnxNetwork
from ..classifier import Classifier, Graph
from ..errors import ExportError, UnsupportedOperatorError, cause
from .older_opset_forms import write_older_forms


def traced_graph(classifier: Classifier, input_name: str, opset: int) -> onnx.ModelProto:
    """Trace a classifier with a batch of 2, because networks specialise at 1.

    Args:
        classifier: What to trace.
        input_name: The name of the graph's input.
        opset: The ONNX operator set.

    Returns:
        The graph, that of an ONNX backbone in its place, without metadata.

    Raises:
        UnsupportedOperatorError: An operator without an ONNX form.
        ExportError: The exporter gave nothing.
        InputError: See `splice_backbone`.
    """
    try:
        with _uncollected():
            program = torch.onnx.export(
                Graph(classifier),
                (classifier.example(),),
                dynamo=True,
                opset_version=opset,
                input_names=[input_name],
                output_names=classifier.outputs,
                dynamic_shapes=(classifier.dynamic_axes(),),
                verbose=False,
            )
    except torch.onnx.errors.OnnxExporterError as error:
        raise UnsupportedOperatorError(f"ONNX export failed: {cause(error)}") from error
    if program is None:
        raise ExportError("ONNX export gave no program")
    splice_backbone(program.model, classifier)
    write_older_forms(program.model)
    model = ir.to_proto(program.model)
    _strip_traces(model.graph)
    return model


@contextmanager
def _uncollected() -> Iterator[None]:
    """Hold the garbage collector back: it would walk again and again over the million small objects of a trace."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _strip_traces(graph: onnx.GraphProto) -> None:
    """Take out the stack traces of the machine that exported; they are most of a small file."""
    for part in (*graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer):
        del part.metadata_props[:]
        part.doc_string = ""
    del graph.metadata_props[:]


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
