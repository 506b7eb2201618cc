"""The Python module beside which files are proved: what it answers, and how far rounding alone moves its logits."""

import copy
from typing import NamedTuple

import numpy as np
import torch

from ..classifier import Classifier
from ..metadata import Metadata
from ..options import FEATURES, FLOAT_NCHW
from ..runtime import Array, Outputs

AT_ONCE = 16
# In whatever order a sum of n products is taken in float32, it is off by at most gamma_n = n u / (1 - n u) of the sum
# of their sizes, u = 2**-24 (Higham, Accuracy and Stability of Numerical Algorithms, 2002, 3.1), so two orders differ
# by twice that at most. Nearly always sqrt(n) stands in the place of n (Higham and Mary 2019), and that is about what
# float64 shows: 2 sqrt(n) times it is certain. 30 is that for n = 225; of it the 200 sound exports of
# `benchmarks/exports_without_alarm.py` use 15 % at most. The rest is for inputs and machines that were not tried.
FACTOR = 30
MOST = 1e-3
# As shares of the largest logit; what was measured is in docs/deploy.md (lite0, in torch and cut out of its own ONNX
# file, and timm's test_resnet). FLOOR: 32 roundings, for modules that float64 agrees with by chance; measured 6.5e-7.
# RESIZED: of 224 x 224 pixels one that falls the other way moves the mean by 1 / 255 / 50,176 = 8e-8 of its range, and
# one in 13 by 3e-4; measured 2.5e-6. FOREIGN: float64 cannot run a graph of onnxruntime's, so ten times what `FACTOR`
# gives the same network in torch (lite0: 9.5e-6); measured 2.2e-7.
FLOOR, RESIZED, FOREIGN = 32 * float(np.finfo(np.float32).eps), 3e-4, 1e-4
IN_FLOAT64 = 8


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


@torch.inference_mode()
def allowed_share(classifier: Classifier, metadata: Metadata, inputs: Array) -> float:
    """How much a logit of a file may differ from the module's, as a share of the largest logit.

    `FACTOR` times the largest difference of the module's logits from those of the same module in float64 (of images:
    on the first 8), at least `FLOOR` and at most `MOST`.

    Args:
        classifier: The Python module.
        metadata: What its files say of themselves.
        inputs: Pixels uint8 ``(N, H, W, 3)``, or features ``(N, D)``.
    """
    least = RESIZED if metadata.resize else FLOOR
    if not metadata.head_only and _runs_a_graph(classifier):
        return max(least, FOREIGN)
    some = inputs if metadata.head_only else inputs[:IN_FLOAT64]
    single = python_outputs(classifier, metadata, some).logits
    given = module_input(metadata, some)
    double = copy.deepcopy(classifier).double()(given if given.dtype == torch.uint8 else given.double()).logits
    largest = np.abs(single).max()
    noise = np.abs(single - double.numpy()).max() / largest if largest else 0.0
    return float(np.clip(FACTOR * noise, least, MOST)) if np.isfinite(noise) else least


def _runs_a_graph(classifier: Classifier) -> bool:
    from ...models.onnx_backbone import OnnxNetwork  # a head alone does without

    return any(isinstance(part, OnnxNetwork) for part in classifier.modules())
