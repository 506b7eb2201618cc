"""What makes a fitted head doubtful, in words."""

from scipy.special import bdtrc
from torch import Tensor

from .criterion import chance_loss
from .fitting import Fitted

# A head whose top-1 guessing would reach so often is at chance level.
CHANCE = 0.01
# So many times the loss of equal scores is no noise of the first steps.
USELESS = 1.1
# Columns of a network's features, or of pixels, deviate up to ten times as much as their median.
SCALES, SAMPLE = 100, 1000


def doubts_of(fitted: Fitted, num_classes: int, features: Tensor) -> list[str]:
    """The doubts about a head that was kept: its loss, its accuracy, the scales of what it was fitted to.

    Args:
        fitted: The head; one epoch at least had a finite loss.
        num_classes: C.
        features: ``(N, D)``, the training split.
    """
    found = (_diverged(fitted), _useless(fitted, num_classes), _at_chance(fitted, num_classes))
    return [doubt for doubt in (*found, _scales(fitted, features)) if doubt]


def _diverged(fitted: Fitted) -> str:
    if not fitted.diverged:
        return ""
    last = fitted.history[-1]
    return (
        f"diverged: the loss is {last['loss']} in epoch {last['epoch']}, epoch {fitted.best['epoch']} was kept; lower "
        f"--learning-rate (now {fitted.config.step_size:g})"
    )


def _useless(fitted: Fitted, num_classes: int) -> str:
    loss, equal = fitted.best["loss"], chance_loss(fitted.config, num_classes)
    if loss <= USELESS * equal:
        return ""
    return (
        f"loss above that of equal scores: {loss:.3g} in training where {equal:.3g} needs no features; change "
        f"--learning-rate (now {fitted.config.step_size:g}), or train for more --epochs"
    )


def _at_chance(fitted: Fitted, num_classes: int) -> str:
    scores = fitted.val or fitted.test
    if not scores:
        return ""
    hits = round(scores["top1"] * scores["n"])
    if bdtrc(hits - 1, scores["n"], 1 / num_classes) < CHANCE:  # so many hits or more, by guessing
        return ""
    return (
        f"chance level: validation top-1 cannot be told from guessing among {num_classes} classes; try another "
        "--learning-rate, --loss softmax, or `headsmith inspect` for the features"
    )


def _scales(fitted: Fitted, features: Tensor) -> str:
    if fitted.config.head == "norm_linear" and fitted.config.norm == "standard":
        return ""
    deviations = features[:: max(1, len(features) // SAMPLE)].double().std(0, correction=0)
    largest, median = float(deviations.max()), float(deviations[deviations > 0].median())
    if not largest > SCALES * median:  # nor where all are 0, whose median is NaN
        return ""
    return (
        f"scales: a column of the features deviates by {largest:.3g}, the median one by {median:.3g}; try --head "
        "norm_linear"
    )
