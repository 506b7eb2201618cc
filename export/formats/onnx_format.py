"""The ONNX writer: a linear head alone directly, all else as torch's exporter traces it."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ...core.errors import InputError
from ...models.heads import Linear
from ..classifier import BATCH, Classifier
from ..errors import ExportError, FixedBatchError, cause
from ..metadata import Metadata
from ..options import FEATURES, OPSET
from .decoding import decode_first

WEIGHT, BIAS = "classifier.head.weight", "classifier.head.bias"
MAX_IR_VERSION = 10
EXTERNAL_ABOVE = 2_000_000_000


def write_onnx(classifier: Classifier, metadata: Metadata, path: Path, *, opset: int = OPSET) -> None:
    """Write one ONNX file: normalisation, network and top-k, with the metadata in ``metadata_props``.

    Input ``pixel_values`` or ``features``; outputs are `Classifier.outputs`; axis ``batch`` is symbolic in all of them.
    A linear head alone is written directly, all else as torch's exporter traces it. Encoded images are one at a time.

    Args:
        classifier: What to write.
        metadata: What the file says of itself.
        path: Where to write; the caller makes sure that a failure leaves nothing behind.
        opset: The ONNX operator set.

    Raises:
        InputError: An opset that the exporter cannot write.
        UnsupportedOperatorError: An operator without an ONNX form.
        FixedBatchError: A batch axis that was fixed on the way.
        ExportError: An invalid graph.
    """
    newest = onnx.defs.onnx_opset_version()
    if not OPSET <= opset <= newest:
        raise InputError(f"--opset {opset}: expected {OPSET} (the lowest that torch writes) to {newest}")
    if classifier.backbone is None and type(classifier.head) is Linear:
        model = linear_graph(classifier, opset)
    else:
        from .tracing import traced_graph  # what torch's exporter imports takes seconds

        model = traced_graph(classifier, metadata.input_name, opset)
    if metadata.encoded:
        decode_first(model)
    save_onnx(model, metadata, path, opset=opset)


def save_onnx(model: onnx.ModelProto, metadata: Metadata, path: Path, *, opset: int) -> None:
    """Write a graph with its metadata, and check it; weights of more than `EXTERNAL_ABOVE` bytes go to ``NAME.data``.

    Args:
        model: The graph; its producer and metadata are set.
        metadata: See `write_onnx`.
        path: See `write_onnx`; a file that is there is replaced.
        opset: The ONNX operator set that it must have.

    Raises:
        InputError: See `write_onnx`.
        FixedBatchError: See `write_onnx`.
        ExportError: See `write_onnx`.
    """
    onnx.helper.set_model_props(model, metadata.to_strings())
    model.producer_name, model.producer_version = "headsmith", metadata.version
    _check(model, metadata, opset)
    data = path.with_name(f"{path.name}.data")
    data.unlink(missing_ok=True)  # else it would be appended to
    large = sum(len(tensor.raw_data) for tensor in model.graph.initializer) > EXTERNAL_ABOVE
    onnx.save_model(model, path, save_as_external_data=large, location=data.name)
    try:
        onnx.checker.check_model(path, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ExportError(f"ONNX graph is not valid: {cause(error)}") from error


def _check(model: onnx.ModelProto, metadata: Metadata, opset: int) -> None:
    written = {entry.domain: entry.version for entry in model.opset_import}[""]
    if written != opset:
        raise InputError(f"--opset {opset}: the exporter could only write {written}; choose that one, or {OPSET}")
    if model.ir_version > MAX_IR_VERSION:
        raise ExportError(f"ONNX IR version {model.ir_version}, expected at most {MAX_IR_VERSION}")
    batched = model.graph.output if metadata.encoded else (*model.graph.input, *model.graph.output)
    for value in batched:
        axis = value.type.tensor_type.shape.dim[0]
        if axis.dim_param != BATCH:
            found = axis.dim_param or axis.dim_value
            raise FixedBatchError(f"ONNX {value.name}: axis 0 is {found}, expected `{BATCH}`")


def linear_graph(classifier: Classifier, opset: int) -> onnx.ModelProto:
    """Write the operators that torch's exporter makes of a linear head and the top-k, without its seconds.

    Args:
        classifier: A `Linear` head without a backbone.
        opset: The ONNX operator set, 18 or more.

    Returns:
        The graph, ``features`` to `Classifier.outputs`, without metadata.
    """
    head, k = classifier.head, classifier.k
    nodes = [
        helper.make_node("Gemm", [FEATURES, WEIGHT, BIAS], ["logits"], transB=1),
        helper.make_node("TopK", ["logits", "k"], ["top", "topk_indices"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"]),
        helper.make_node("GatherElements", ["probabilities", "topk_indices"], ["topk_scores"], axis=-1),
    ]
    for node in nodes:
        node.name = node.output[0]  # tools that convert a graph tell its nodes apart by name
    constants = {
        WEIGHT: head.get_parameter("weight").detach().numpy(),
        BIAS: head.get_parameter("bias").detach().numpy(),
        "k": np.array([k]),
    }
    outputs = {
        "logits": (TensorProto.FLOAT, head.num_classes),
        "topk_scores": (TensorProto.FLOAT, k),
        "topk_indices": (TensorProto.INT64, k),
        "probabilities": (TensorProto.FLOAT, head.num_classes),
    }
    graph = helper.make_graph(
        nodes,
        "main_graph",
        [helper.make_tensor_value_info(FEATURES, TensorProto.FLOAT, [BATCH, head.in_features])],
        [_output(name, *outputs[name]) for name in classifier.outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=MAX_IR_VERSION)


def _output(name: str, kind: int, width: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, [BATCH, width])
