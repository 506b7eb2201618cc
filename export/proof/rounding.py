"""How far rounding alone moves the logits of a module, and so how far those of its file may be moved."""

import copy

import numpy as np
import torch

from ..classifier import Classifier
from ..metadata import Metadata
from ..runtime import Array
from .module import module_input, python_outputs

# Two ways to compute the same in float32 differ by about as much as each from float64; the factor is for inputs and
# machines that were not tried.
FACTOR = 30
MOST = 1e-3
# A few roundings of one logit; a pixel that resize inside the graph rounds the other way; what onnxruntime makes of a
# graph of its own, which float64 cannot tell.
FLOOR, RESIZED, FOREIGN = 32 * float(np.finfo(np.float32).eps), 3e-4, 1e-4
IMAGES = 8


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
    some = inputs if metadata.head_only else inputs[:IMAGES]
    single = python_outputs(classifier, metadata, some).logits
    given = module_input(metadata, some)
    double = copy.deepcopy(classifier).double()(given if given.dtype == torch.uint8 else given.double()).logits
    largest = np.abs(single).max()
    noise = np.abs(single - double.numpy()).max() / largest if largest else 0.0
    return float(np.clip(FACTOR * noise, least, MOST)) if np.isfinite(noise) else least


def _runs_a_graph(classifier: Classifier) -> bool:
    from ...models.onnx_backbone import OnnxNetwork  # a head alone does without

    return any(isinstance(part, OnnxNetwork) for part in classifier.modules())
