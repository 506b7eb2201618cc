"""Warnings about a fitted head, with their codes."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import xxhash
from scipy.special import bdtr
from torch import Tensor

from ..core.coded_warnings import CHANCE, RUNAWAY, CodedWarning
from ..core.errors import with_keywords
from ..metrics.chance import chance, commonest, fewest_hits, fewest_rows, like_guesses
from .criterion import chance_loss
from .feature_scale import TINY, column_size
from .features.feature_set import FeatureSet
from .features.inspection.changed_since_written import as_written
from .features.inspection.split_coverage import few_rows, unanswered
from .features.leak_warnings import leaks
from .fitting import Fitted
from .fitting.fit_record import FitRecord
from .scores import EpochScores, SplitScores

Labels = np.ndarray[Any, np.dtype[np.int64]]
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


def run_warnings(fitted: Fitted, feature_set: FeatureSet) -> list[CodedWarning]:
    """The warnings about a head that was kept: its loss, its accuracy, its epoch, and what it was fitted to.

    They name settings in the words of Python.

    Args:
        fitted: The head; one epoch at least had a finite loss.
        feature_set: Where its rows are from. All ids and labels are looked at, of the features a sample.
    """
    classes = len(feature_set.class_names)
    found = (
        _diverged(fitted),
        useless_loss(fitted, classes),
        _at_chance(fitted, feature_set),
        _first_epoch(fitted),
        _unlike(fitted),
        _scales(fitted, feature_set.arrays("train")[0]),
        _offset(fitted, feature_set.arrays("train")[0]),
        _tiny(fitted, feature_set.arrays("train")[0]),
        _few(feature_set),
        *leaks(feature_set),
        _damaged(feature_set),
    )
    lost = unanswered(feature_set.columns, feature_set.class_names)
    told = [replace(one, message=with_keywords(one.message)) for one in found if one is not None]
    return told + [CodedWarning("unanswerable", f"{split}: {rows}") for split, rows in lost.items()]


def _diverged(fitted: Fitted) -> CodedWarning | None:
    if not fitted.diverged:
        return None
    return CodedWarning(
        "diverged",
        f"{divergence(fitted.history[-1])}, epoch {fitted.kept.epoch} was kept; lower --learning-rate "
        f"(now {fitted.config.step_size:g})",
    )


def divergence(last: EpochScores) -> str:
    """Which loss is not finite, in words.

    Args:
        last: The last epoch of a head that diverged.
    """
    if math.isfinite(last.loss) and last.val is not None:
        return f"the loss on val is {last.val.loss} after epoch {last.epoch}"
    return f"the loss is {last.loss} in epoch {last.epoch}"


def useless_loss(fitted: FitRecord, num_classes: int) -> CodedWarning | None:
    """A warning of a training loss above that of equal scores, for which no features are needed."""
    loss, equal = fitted.kept.loss, chance_loss(fitted.config, num_classes)
    if loss <= USELESS * equal:
        return None
    now, far = f"--learning-rate (now {fitted.config.step_size:g})", loss > FAR * equal
    advice = f"lower {now}" if far else f"change {now}, or train for more --epochs"
    return CodedWarning(
        RUNAWAY if far else "useless",
        f"the training loss {loss:.3g} is above {equal:.3g}, that of equal scores for all classes; {advice}",
    )


def _at_chance(fitted: Fitted, feature_set: FeatureSet) -> CodedWarning | None:
    split = "val" if fitted.val else "test"
    scores = fitted.val or fitted.test
    found = None if scores is None else at_chance(scores, feature_set, split)
    if found is None:
        return None
    advice = "try another --learning-rate, --loss softmax, or `headsmith inspect` for the features"
    return CodedWarning(CHANCE, f"{found}; {advice}")


def at_chance(scores: SplitScores, feature_set: FeatureSet, split: str) -> str | None:
    """`like_guessing` of a head on a split of a feature set."""
    labels = {name: feature_set.arrays(name)[1].numpy() for name in ("train", split)}
    return like_guessing(scores, labels["train"], labels[split], split)


def like_guessing(scores: SplitScores, training: Labels, judged: Labels, split: str) -> str | None:
    """What is wrong with a top-1 that naming always the most frequent training class would reach.

    Args:
        scores: Of a classifier.
        training: ``(N,)`` labels of the training rows.
        judged: ``(M,)`` labels of the rows that were judged.
        split: Their split.
    """
    guess = commonest(training)
    level = chance(guess, judged)
    if not like_guesses(scores.hits, scores.n, level):
        return None
    what = "the most frequent class" if len(guess) == 1 else f"one of the {len(guess)} most frequent classes"
    return (
        f"{split} top-1, {scores.top1:.1%}, cannot be told from guessing: {what} of the training rows, always "
        f"named, is right for {level:.1%} of the {scores.n:,} {split} rows; {_needed(scores.n, level, split)}"
    )


def _needed(n: int, level: float, split: str) -> str:
    """What would have told a head from guesses."""
    hits = fewest_hits(n, level)
    if hits is not None:
        return f"{hits:,} of them right would tell it from that"
    rows = fewest_rows(level)
    return "so few tell nothing" + (f", give at least {rows:,} {split} rows" if rows else ": they are of that class")


def _first_epoch(fitted: Fitted) -> CodedWarning | None:
    if fitted.config.optimizer == "lbfgs":  # whose epochs are 20 iterations
        return None
    first, last, epochs = fitted.history[0].loss, fitted.history[-1].loss, len(fitted.history)
    if not fitted.val or fitted.val.top1 == 1 or fitted.kept.epoch > 1 or epochs < MANY or not last < first:
        return None
    return CodedWarning(
        "first-epoch",
        f"the best epoch is 1 of {epochs}: validation accuracy never rose, while the training loss fell from "
        f"{first:.3g} to {last:.3g}; lower --learning-rate (now {fitted.config.step_size:g}), or see with `headsmith "
        "inspect` whether val is like train",
    )


def _unlike(fitted: Fitted) -> CodedWarning | None:
    val, test = fitted.val, fitted.test
    # So few hits or fewer, with that share.
    if not val or not test or bdtr(test.hits, test.n, UNLIKE * val.top1) >= RARELY:
        return None
    return CodedWarning(
        "unlike-test",
        f"test is unlike val: top-1 {test.top1:.1%} where validation has {val.top1:.1%}; see with `headsmith inspect` "
        "whether its labels and features are right",
    )


def _scales(fitted: Fitted, features: Tensor) -> CodedWarning | None:
    if _standardised(fitted):
        return None
    deviations = _some(features).std(0, correction=0)
    largest, median = float(deviations.max()), float(deviations[deviations > 0].median())
    if not largest > SCALES * median:  # nor where all are 0, whose median is NaN
        return None
    return CodedWarning(
        "scales",
        f"a column of the features deviates by {largest:.3g}, the median one by {median:.3g}; try --head norm_linear",
    )


def _offset(fitted: Fitted, features: Tensor) -> CodedWarning | None:
    if _standardised(fitted) or fitted.config.optimizer == "lbfgs":
        return None
    some = _some(features)
    means, deviations = some.mean(0).abs(), some.std(0, correction=0)
    offset = float((means / deviations)[deviations > 0].median())
    if not offset > OFFSET:
        return None
    return CodedWarning(
        "offset",
        f"the mean of the median column of the features is {offset:.3g} times its deviation; try --head norm_linear",
    )


def _tiny(fitted: Fitted, features: Tensor) -> CodedWarning | None:
    size = column_size(features)
    if fitted.config.head != "linear" or fitted.config.optimizer == "lbfgs" or size >= TINY:
        return None
    return CodedWarning(
        "tiny",
        f"the root mean square of the median column of the features is {size:.3g}; multiply them by about "
        f"{1 / size:.0g}, or try --head norm_linear",
    )


def _standardised(fitted: Fitted) -> bool:
    return fitted.config.head == "norm_linear" and fitted.config.norm == "standard"


def _some(features: Tensor) -> Tensor:
    return features[:: max(1, len(features) // SAMPLE)].double()


def _few(feature_set: FeatureSet) -> CodedWarning | None:
    found = few_rows(feature_set.columns["train"], feature_set.manifest)
    return CodedWarning("few-rows", found) if found else None


def _damaged(feature_set: FeatureSet) -> CodedWarning | None:
    changed = []
    for split, columns in feature_set.columns.items():
        digest = xxhash.xxh3_128_hexdigest(np.ascontiguousarray(columns.features).data)
        if as_written(feature_set.path, split, feature_set.manifest, columns, digest) is False:
            changed.append(split)
    if not changed:
        return None
    return CodedWarning(
        "damaged",
        f"{' and '.join(changed)}: features are not those that were written: the file is damaged, or another program "
        "saved it; make it again and train again",
    )
