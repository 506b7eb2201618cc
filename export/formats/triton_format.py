"""A model repository of NVIDIA's Triton Inference Server around the ONNX file."""

import json
import shutil
from pathlib import Path

import onnx

from ..classifier import Classifier
from ..metadata import Metadata
from ..options import OPSET
from .onnx_format import write_onnx

CONFIG, LABELS = "config.pbtxt", "labels.txt"
LARGEST_BATCH, QUEUE_MICROSECONDS = 64, 1000
SCORES = ("logits", "probabilities")
TYPES = {
    "FLOAT": "TYPE_FP32",
    "FLOAT16": "TYPE_FP16",
    "UINT8": "TYPE_UINT8",
    "INT64": "TYPE_INT64",
}


def write_triton(classifier: Classifier, metadata: Metadata, path: Path, *, opset: int = OPSET) -> None:
    """Write ``NAME/config.pbtxt``, ``NAME/labels.txt`` and ``NAME/1/model.onnx``; ``--model-repository`` is above NAME.

    Args:
        classifier: What to write.
        metadata: What the file says of itself.
        path: ``.../NAME/1/model.onnx``. The bundle's own ``model.onnx``, three folders up, is copied where it is there.
        opset: The ONNX operator set.

    Raises:
        ExportError: See `write_onnx`.
    """
    finished = path.parents[3] / path.name
    if finished.is_file():
        for file in finished.parent.glob(f"{path.name}*"):
            shutil.copyfile(file, path.parent / file.name)
    else:
        write_onnx(classifier, metadata, path, opset=opset)
    folder = path.parents[1]
    (folder / LABELS).write_text("".join(f"{label}\n" for label in metadata.labels), encoding="utf-8", newline="\n")
    (folder / CONFIG).write_text(_config(folder.name, path), encoding="utf-8")


def _config(name: str, path: Path) -> str:
    """The configuration in protobuf's text format, with the inputs and outputs of the file, less their batch axis."""
    graph = onnx.load(path, load_external_data=False).graph
    inputs = ",\n".join(_tensor(value, "") for value in graph.input)
    outputs = ",\n".join(
        _tensor(value, f'\n    label_filename: "{LABELS}"' if value.name in SCORES else "") for value in graph.output
    )
    return f"""name: {json.dumps(name, ensure_ascii=False)}
platform: "onnxruntime_onnx"
max_batch_size: {LARGEST_BATCH}
input [
{inputs}
]
output [
{outputs}
]
dynamic_batching {{
  max_queue_delay_microseconds: {QUEUE_MICROSECONDS}
}}
"""


def _tensor(value: onnx.ValueInfoProto, extra: str) -> str:
    kind = value.type.tensor_type
    dims = [axis.dim_value or -1 for axis in kind.shape.dim[1:]]
    dtype = TYPES[onnx.TensorProto.DataType.Name(kind.elem_type)]
    return f"""  {{
    name: "{value.name}"
    data_type: {dtype}
    dims: {dims}{extra}
  }}"""
