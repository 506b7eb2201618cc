"""The Python module beside which files are proved, and what it answers."""

from typing import NamedTuple

import numpy as np
import torch

from ..classifier import Classifier
from ..metadata import Metadata
from ..options import FEATURES, FLOAT_NCHW
from ..runtime import Array, Outputs

AT_ONCE = 16


class PythonModule(NamedTuple):
    """A classifier with what its files say of themselves.

    Attributes:
        classifier: The module.
        metadata: Of its float32 files.
    """

    classifier: Classifier
    metadata: Metadata


@torch.inference_mode()
def python_outputs(classifier: Classifier, metadata: Metadata, inputs: Array) -> Outputs:
    """The Python module's answer to pixels uint8 ``(N, H, W, 3)`` or features ``(N, D)``.

    Pixels stay channels-last in memory, which torch computes two to four times faster on a CPU; and of 16 images at
    once twice as fast as of 64, whose activations are too large for its caches.
    """
    tensor = module_input(metadata, inputs)
    parts = [classifier(part) for part in tensor.split(len(tensor) if metadata.head_only else AT_ONCE)]
    return Outputs.of(None if column[0] is None else torch.cat(column) for column in zip(*parts, strict=True))


def module_input(metadata: Metadata, inputs: Array) -> torch.Tensor:
    """Inputs in the layout and dtype that the module takes."""
    tensor = torch.from_numpy(np.ascontiguousarray(inputs))  # torch takes no view that steps backwards
    if metadata.input_format == FLOAT_NCHW:
        tensor = tensor.permute(0, 3, 1, 2)
    return tensor.float() if metadata.input_format in (FLOAT_NCHW, FEATURES) else tensor
