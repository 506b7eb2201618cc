"""The graph of a classifier as torch's exporter traces it."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import onnx
import onnx_ir as ir
import torch

from ..classifier import Classifier, Graph
from ..errors import ExportError, UnsupportedOperatorError, cause
from .older_forms import write_older_forms
from .onnx_backbone_insertion import splice_backbone


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
