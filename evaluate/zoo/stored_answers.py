"""The answers that a file's authors stored beside it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from ...core.coded_warnings import CodedWarning
from ...core.errors import DamagedFileError
from ...export.runtime import Array
from ...metrics.equality import difference
from .external_onnx import ExternalOnnxModel

TOLERANCE = 1e-3


def stored_answer_warnings(model: ExternalOnnxModel) -> Iterator[CodedWarning]:
    """Whether a file of one output answers as its authors stored it.

    The ONNX Model Zoo puts folders ``test_data_set_0`` with ``input_0.pb`` and ``output_0.pb`` beside a file: numbers
    as they are fed, which say whether it runs as it did, and nothing of how images are prepared.

    Yields:
        A warning for each folder whose answers differ by more than `TOLERANCE` of the largest one, or are NaN or
        infinite there or here.

    Raises:
        DamagedFileError: What is stored cannot be read.
    """
    names = [value.name for value in model.session.get_outputs()]
    for folder in sorted(model.path.parent.glob("test_data_set_*")) if len(names) == 1 else ():
        inputs, expected = (_tensor(folder / name) for name in ("input_0.pb", "output_0.pb"))
        (found,) = model.session.run(names, {model.session.get_inputs()[0].name: inputs})
        if not difference(expected, found).within(TOLERANCE * np.abs(expected).max(initial=0)):
            message = f"it answers otherwise than its authors stored in {folder.name}: another file, or a damaged one?"
            yield CodedWarning("stored-answers", message)


def _tensor(path: Path) -> Array:
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(path.read_bytes())
        return np.asarray(onnx.numpy_helper.to_array(tensor))
    except (DecodeError, OSError, TypeError, ValueError) as error:
        raise DamagedFileError(f"{path}: not a stored tensor ({error}); download it again") from None
