"""int8 in the network of an exported ONNX file, through onnxruntime's own tools."""

from collections.abc import Iterable
from pathlib import Path

import onnx
from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.quant_utils import add_pre_process_metadata

from ..runtime import Array
from .calibration_feeds import Feeds
from .network_nodes import network_part

FLOAT_OPERATORS = ("GlobalAveragePool", "LayerNormalization", "Softmax")
MATRIX_PRODUCTS = ["Gemm", "MatMul"]


def quantize_with_ranges(model: onnx.ModelProto, path: Path, batches: Iterable[Array]) -> None:
    """Quantise weights and activations: int8 weights with a scale a channel, uint8 activations with a scale a tensor.

    The ranges of the activations are the smallest and largest values on calibration inputs (QDQ format). Preprocessing,
    the first convolution, layer norms, softmax, the logits and what follows from them stay float32.

    Args:
        model: What `write_onnx` wrote.
        path: The new file.
        batches: Calibration inputs, in the layout and dtype that the file takes.

    Raises:
        ExportError: The file has no convolution or matrix product.
    """
    nodes = network_part(model).model.graph.node
    first = next((node.name for node in nodes if node.op_type == "Conv"), None)
    add_pre_process_metadata(model)  # torch's exporter has folded and fused already
    quantize_static(
        model,
        path,
        Feeds(model.graph.input[0].name, batches),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        nodes_to_quantize=[node.name for node in nodes if node.name != first and node.op_type not in FLOAT_OPERATORS],
        extra_options={"OpTypesToExcludeOutputQuantization": ["Gemm"]},  # 256 levels of logits would tie
    )


def quantize_dynamically(model: onnx.ModelProto, path: Path) -> None:
    """Quantise matrix products alone, whose activations get their ranges anew from every batch.

    Args:
        model: What `write_onnx` wrote.
        path: The new file.

    Raises:
        ExportError: The file has no convolution or matrix product.
    """
    network_part(model)
    del model.graph.value_info[:]  # onnxruntime turns the weights of Gemm, and keeps what was noted of their shape
    add_pre_process_metadata(model)
    quantize_dynamic(model, path, op_types_to_quantize=MATRIX_PRODUCTS, per_channel=True, weight_type=QuantType.QInt8)
