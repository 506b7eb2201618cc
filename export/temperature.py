"""Calibration by one temperature (Guo et al., ICML 2017): confidences that are right as often as they say."""

import copy
import math

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from ..metrics.calibration import reliability
from ..models.heads import Head
from ..trainer.features.feature_set import FeatureSet
from .bundle.manifest import Calibration, Confidence

SPLITS = ("val", "test")
LARGEST = 100.0


class TemperatureScaled(Head):
    """A trained head whose logits are divided by a temperature; its folded form has that in its weights."""

    kind = "tempered"

    def __init__(self, head: Head, temperature: float) -> None:
        super().__init__(head.in_features, head.num_classes)
        self.inner, self.temperature = head, temperature

    def forward(self, features: Tensor) -> Tensor:
        """Logits ``(N, C)`` of features ``(N, D)``."""
        logits: Tensor = self.inner(features)
        return logits / self.temperature

    @torch.no_grad()
    def folded(self) -> Head:
        """The folded head, the weights of its classes divided."""
        head = copy.deepcopy(self.inner.folded())
        for name in head.class_parameters:
            head.get_parameter(name).div_(self.temperature)
        return head


def calibration_of(head: Head, features: FeatureSet) -> Calibration:
    """Fit a temperature on the validation split of the features that a head was trained on.

    Raises:
        InputError: The features have no validation or test split.
    """
    found = {split: _logits(head, features, split) for split in SPLITS}
    temperature = fit_temperature(*found["val"])
    return Calibration(
        temperature,
        {split: confidence(logits, labels) for split, (logits, labels) in found.items()},
        {split: confidence(logits / temperature, labels) for split, (logits, labels) in found.items()},
    )


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """The temperature in 0.01..100 with the smallest negative log-likelihood.

    Args:
        logits: ``(N, C)``, float.
        labels: ``(N,)`` int64.

    Returns:
        The temperature; 1 where every label has the largest logit, so that no temperature is small enough.
    """
    if not len(labels) or bool((logits.argmax(1) == labels).all()):
        return 1.0
    span = math.log(LARGEST)

    def loss(exponent: float) -> float:
        return _nll(logits / math.exp(exponent), labels)

    found = math.exp(minimize_scalar(loss, bounds=(-span, span), method="bounded", options={"xatol": 1e-6}).x)
    return found if loss(math.log(found)) < loss(0.0) else 1.0


def confidence(logits: Tensor, labels: Tensor) -> Confidence:
    """Measure probabilities against labels; the arguments are those of `fit_temperature`."""
    top, best = torch.softmax(logits, 1).double().max(1)
    curve = reliability(top.numpy(), (best == labels).numpy())
    return Confidence(len(labels), _nll(logits, labels), curve.ece)


def _nll(logits: Tensor, labels: Tensor) -> float:
    return float(torch.nn.functional.cross_entropy(logits, labels, reduction="none").double().mean())


@torch.inference_mode()
def _logits(head: Head, features: FeatureSet, split: str) -> tuple[Tensor, Tensor]:
    rows, labels = features.arrays(split)
    return torch.cat([head(part.float()) for part in rows.split(65536)]), labels
