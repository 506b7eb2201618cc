"""What makes a fitted head doubtful, in words."""

import math
from collections.abc import Mapping
from typing import Any

from scipy.special import bdtr
from torch import Tensor

from ..core.errors import with_keywords
from ..core.warnings import AT_CHANCE, RUNAWAY
from ..metrics.chance import chance, commonest, fewest_hits, fewest_rows, like_guesses
from .criterion import chance_loss
from .feature_scale import TINY, column_size
from .features.copies import all_of
from .features.feature_set import FeatureSet
from .features.images.samples import listed
from .features.inspection.splits import few_rows, shared_ids, unanswered
from .fitting import Fitted

# So many times the loss of equal scores is no noise of the first steps.
USELESS = 1.1
# Scores so far from the labels are those of weights that ran away.
FAR = 1000
# Columns of a network's features, or of pixels, deviate up to ten times as much as their median.
SCALES, OFFSET, SAMPLE = 100, 6, 1000
# A test split on which so small a share of the validation accuracy is left is another kind of data.
UNLIKE, RARELY = 0.5, 0.01
# With fewer epochs the first may be the best by chance.
MANY = 5


def doubts_of(fitted: Fitted, feature_set: FeatureSet) -> list[str]:
    """The doubts about a head that was kept: its loss, its accuracy, its epoch, and what it was fitted to.

    They name settings in the words of Python.

    Args:
        fitted: The head; one epoch at least had a finite loss.
        feature_set: Where its rows are from. All ids and labels are looked at, of the features a sample.
    """
    classes = len(feature_set.class_names)
    found = (
        _diverged(fitted),
        useless(fitted, classes),
        _at_chance(fitted, feature_set),
        _first_epoch(fitted),
        _unlike(fitted),
        _scales(fitted, feature_set.arrays("train")[0]),
        _offset(fitted, feature_set.arrays("train")[0]),
        _tiny(fitted, feature_set.arrays("train")[0]),
        _leak(feature_set),
        _few(feature_set),
        _copies(feature_set),
    )
    lost = unanswered(feature_set.columns, feature_set.class_names)
    return [*map(with_keywords, filter(None, found)), *(f"{split}: {rows}" for split, rows in lost.items())]


def _diverged(fitted: Fitted) -> str:
    if not fitted.diverged:
        return ""
    return (
        f"diverged: {divergence(fitted.history[-1])}, epoch {fitted.best['epoch']} was kept; lower "
        f"--learning-rate (now {fitted.config.step_size:g})"
    )


def divergence(last: Mapping[str, Any]) -> str:
    """Which loss is not finite, in words.

    Args:
        last: The row of the last epoch of a head that diverged.
    """
    if not math.isfinite(last["loss"]):
        return f"the loss is {last['loss']} in epoch {last['epoch']}"
    return f"the loss on val is {last['val']['loss']} after epoch {last['epoch']}"


def useless(fitted: Fitted, num_classes: int) -> str:
    """The doubt about a training loss above that of equal scores, which needs no features; else nothing."""
    loss, equal = fitted.best["loss"], chance_loss(fitted.config, num_classes)
    if loss <= USELESS * equal:
        return ""
    what = RUNAWAY if loss > FAR * equal else "loss above that of equal scores"
    return (
        f"{what}: {loss:.3g} in training where {equal:.3g} needs no features; change "
        f"--learning-rate (now {fitted.config.step_size:g}), or train for more --epochs"
    )


def _at_chance(fitted: Fitted, feature_set: FeatureSet) -> str:
    split = "val" if fitted.val else "test"
    scores = fitted.val or fitted.test
    if not scores:
        return ""
    doubt = at_chance(scores, feature_set, split)
    return doubt and (
        f"{AT_CHANCE}: {doubt}; try another --learning-rate, --loss softmax, or `headsmith inspect` for the features"
    )


def at_chance(scores: Mapping[str, Any], feature_set: FeatureSet, split: str) -> str:
    """What is doubtful of a top-1 that naming always the most frequent training class would reach; else nothing.

    Args:
        scores: ``top1`` and ``n`` of a head.
        feature_set: Where the rows are from.
        split: The rows that were judged.
    """
    guess = commonest(feature_set.arrays("train")[1].numpy())
    level = chance(guess, feature_set.arrays(split)[1].numpy())
    if not like_guesses(round(scores["top1"] * scores["n"]), scores["n"], level):
        return ""
    what = "the most frequent class" if len(guess) == 1 else f"one of the {len(guess)} most frequent classes"
    return (
        f"{split} top-1, {scores['top1']:.1%}, cannot be told from guessing: {what} of the training rows, always "
        f"named, is right for {level:.1%} of the {scores['n']:,} {split} rows; {_needed(scores['n'], level, split)}"
    )


def _needed(n: int, level: float, split: str) -> str:
    """What would have told a head from guesses."""
    hits = fewest_hits(n, level)
    if hits is not None:
        return f"{hits:,} of them right would tell it from that"
    rows = fewest_rows(level)
    return "so few tell nothing" + (f", give at least {rows:,} {split} rows" if rows else ": they are of that class")


def _first_epoch(fitted: Fitted) -> str:
    if fitted.config.optimizer == "lbfgs":  # whose epochs are 20 iterations
        return ""
    first, last, epochs = fitted.history[0]["loss"], fitted.history[-1]["loss"], len(fitted.history)
    if not fitted.val or fitted.val["top1"] == 1 or fitted.best["epoch"] > 1 or epochs < MANY or not last < first:
        return ""
    return (
        f"the best epoch is 1 of {epochs}: validation never had more right, while the training loss fell from "
        f"{first:.3g} to {last:.3g}; lower --learning-rate (now {fitted.config.step_size:g}), or see with `headsmith "
        "inspect` whether val is like train"
    )


def _unlike(fitted: Fitted) -> str:
    if not fitted.val or not fitted.test:
        return ""
    val, test = fitted.val["top1"], fitted.test["top1"]
    hits = round(test * fitted.test["n"])
    if bdtr(hits, fitted.test["n"], UNLIKE * val) >= RARELY:  # so few hits or fewer, with that share
        return ""
    return (
        f"test is unlike val: top-1 {test:.1%} where validation has {val:.1%}; see with `headsmith inspect` whether "
        "its labels and features are right"
    )


def _scales(fitted: Fitted, features: Tensor) -> str:
    if _standardised(fitted):
        return ""
    deviations = _some(features).std(0, correction=0)
    largest, median = float(deviations.max()), float(deviations[deviations > 0].median())
    if not largest > SCALES * median:  # nor where all are 0, whose median is NaN
        return ""
    return (
        f"scales: a column of the features deviates by {largest:.3g}, the median one by {median:.3g}; try --head "
        "norm_linear"
    )


def _offset(fitted: Fitted, features: Tensor) -> str:
    if _standardised(fitted) or fitted.config.optimizer == "lbfgs":
        return ""
    some = _some(features)
    means, deviations = some.mean(0).abs(), some.std(0, correction=0)
    offset = float((means / deviations)[deviations > 0].median())
    if not offset > OFFSET:
        return ""
    return (
        f"offset: the mean of the median column of the features is {offset:.3g} times its deviation; try --head "
        "norm_linear"
    )


def _tiny(fitted: Fitted, features: Tensor) -> str:
    size = column_size(features)
    if fitted.config.head != "linear" or fitted.config.optimizer == "lbfgs" or size >= TINY:
        return ""
    return (
        f"tiny: the root mean square of the median column of the features is {size:.3g}; multiply them by about "
        f"{1 / size:.0g}, or try --head norm_linear"
    )


def _standardised(fitted: Fitted) -> bool:
    return fitted.config.head == "norm_linear" and fitted.config.norm == "standard"


def _some(features: Tensor) -> Tensor:
    return features[:: max(1, len(features) // SAMPLE)].double()


def _copies(feature_set: FeatureSet) -> str:
    """What `extract` told of copies, in one line."""
    copies = feature_set.manifest.get("copies", {})
    across, conflicts = copies.get("across", {}), copies.get("conflicts", {}).get("pictures", 0)
    told = []
    if across:
        counts = " and ".join(
            f"{found['images']} of {feature_set.manifest['splits'][split]} {split}" for split, found in across.items()
        )
        whole = [(name, count) for found in across.values() for name, count in found.get("classes", ())]
        told.append(
            f"leak: {counts} images are copies of images of an earlier split{all_of(whole)}, so accuracies may be too "
            "high"
        )
    if conflicts:
        told.append(f"{conflicts} pictures stand in more than one class")
    return f"{'; '.join(told)}; see `headsmith inspect {feature_set.path}`" if told else ""


def _leak(feature_set: FeatureSet) -> str:
    shared = shared_ids(feature_set.columns)
    if not shared:
        return ""
    return (
        f"leak: {len(shared)} ids stand in more than one split ({listed(shared)}), so accuracies may be too high; take "
        "them out of all but one"
    )


def _few(feature_set: FeatureSet) -> str:
    found = few_rows(feature_set.columns["train"], feature_set.manifest)
    return found and f"few: {found}"
