"""How much the logits of a written file may differ from the Python module's: the numbers, and where they come from."""

import copy
from typing import TYPE_CHECKING

import numpy as np

from ..metadata import Metadata
from ..runtime import Array

if TYPE_CHECKING:
    from ..classifier import Classifier

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
# When a bundle is verified, shares c of the largest logit: what no float32 file may differ by where somebody asked for
# a tolerance, and no file in lower precision from itself. A class that leads by more than 2 c of the largest logit
# stays first then, whatever a bundle allows. Where nobody asked, `MOST` bounds float32: 1e-3, about 2 u = 2**-10, one
# layer's rounding in TF32. In lower precision the measured noise bounds it first; the quarter is for int8, whose
# eight-bit sums saturate on CPUs without VNNI (onnxruntime's documentation of quantization), so that nothing can be
# derived for another CPU: it is only what no file may do, and keeps a class first that leads by half of the largest
# logit.
MOST_ASKED, MOST_LOWER = 1e-2, 0.25


def allowed_share(classifier: "Classifier", metadata: Metadata, inputs: Array) -> float:
    """How much a logit of a file may differ from the module's, as a share of the largest logit.

    `FACTOR` times the largest difference of the module's logits from those of the same module in float64 (of images:
    on the first 8), at least `FLOOR` and at most `MOST`.

    Args:
        classifier: The Python module.
        metadata: What its files say of themselves.
        inputs: Pixels uint8 ``(N, H, W, 3)``, or features ``(N, D)``.
    """
    import torch  # the measurement of ONNX files reads these numbers and does without

    from .python_module import module_input, python_outputs

    least = RESIZED if metadata.resize else FLOOR
    if not metadata.head_only and _runs_a_graph(classifier):
        return max(least, FOREIGN)
    some = inputs if metadata.head_only else inputs[:IN_FLOAT64]
    single = python_outputs(classifier, metadata, some).logits
    given = module_input(metadata, some)
    with torch.inference_mode():
        double = copy.deepcopy(classifier).double()(given if given.dtype == torch.uint8 else given.double()).logits
    largest = np.abs(single).max()
    noise = np.abs(single - double.numpy()).max() / largest if largest else 0.0
    return float(np.clip(FACTOR * noise, least, MOST)) if np.isfinite(noise) else least


def _runs_a_graph(classifier: "Classifier") -> bool:
    from ...models.onnx_backbone import OnnxNetwork  # a head alone does without

    return any(isinstance(part, OnnxNetwork) for part in classifier.modules())
