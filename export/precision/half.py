"""float16 in the middle of an ONNX graph: the network, not the preprocessing before it or the top-k behind it."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
from onnx import compose
from onnx.utils import Extractor
from onnxruntime.quantization import create_calibrator
from onnxruntime.transformers.float16 import convert_float_to_float16
from onnxruntime.transformers.onnx_model import OnnxModel

from ..runtime import Array
from .calibration_feeds import Feeds
from .network_nodes import network_part

LARGEST_HALF = float(np.finfo(np.float16).max)


def to_half(model: onnx.ModelProto, *, keep_head: bool = False) -> onnx.ModelProto:
    """Convert the network of an exported classifier to float16.

    Preprocessing and all outputs stay float32, and so does what follows from the logits: a runtime may keep more digits
    between two float16 operators than float16 has, but scores and top-k are always those of the logits that it gives.

    Args:
        model: The float32 graph.
        keep_head: The head stays float32 too.

    Returns:
        The converted graph, without metadata.

    Raises:
        ExportError: Nothing is there to convert.
    """
    part, start, end = network_part(model, with_head=not keep_head)
    inputs, outputs = ([value.name for value in values] for values in (model.graph.input, model.graph.output))
    extractor = Extractor(model)
    network = convert_float_to_float16(part, keep_io_types=True)
    OnnxModel(network).topological_sort()
    answers = extractor.extract_model([end], [name for name in outputs if name != end])
    merged = _joined(network, answers, end, outputs)
    if start not in inputs:
        merged = _joined(extractor.extract_model(inputs, [start]), merged, start, outputs)
    return merged


def beyond_half(path: Path, batches: Iterable[Array], *, keep_head: bool = False) -> dict[str, float]:
    """Find what would overflow in float16: many runtimes on a CPU compute in float32 between, and hide it.

    Args:
        path: The float32 file.
        batches: Real inputs, in the layout and dtype that it takes.
        keep_head: See `to_half`.

    Returns:
        Of the tensors that would be float16, those beyond 65504 in magnitude on these inputs, with that magnitude.
    """
    model = onnx.load(path)
    with tempfile.TemporaryDirectory() as folder:
        calibrator = create_calibrator(path, augmented_model_path=str(Path(folder, "augmented.onnx")))
        calibrator.collect_data(Feeds(model.graph.input[0].name, batches))
        ranges = calibrator.compute_data().items()
    halved = half_names(model, keep_head=keep_head)
    largest = {name: float(np.abs([*found.range_value]).max()) for name, found in ranges if name in halved}
    return {name: value for name, value in largest.items() if not value <= LARGEST_HALF}


def half_names(model: onnx.ModelProto, *, keep_head: bool = False) -> set[str]:
    """The tensors that `to_half` makes float16."""
    part, start, _ = network_part(model, with_head=not keep_head)
    return {start, *(name for node in part.graph.node for name in node.output)}


def _joined(first: onnx.ModelProto, second: onnx.ModelProto, value: str, outputs: list[str]) -> onnx.ModelProto:
    """Two graphs as one, where the first one's output ``value`` is the second one's input."""
    for part in (first, second):
        del part.graph.value_info[:]
    first = compose.add_prefix(first, "_", rename_inputs=False, rename_outputs=False)  # constants may be in both
    return compose.merge_models(first, second, io_map=[(value, value)], outputs=outputs)
