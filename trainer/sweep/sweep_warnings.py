"""Warnings about the result of a sweep, with their codes."""

import math
from collections.abc import Sequence
from dataclasses import replace

from ...core.builtin_types import is_number
from ...core.coded_warnings import CHANCE, CodedWarning
from ...core.errors import with_keywords
from ..features.feature_set import FeatureSet
from ..run_warnings import at_chance, useless_loss
from ..train_config import TrainConfig
from ..unused_settings import unused
from .bank_grouping import Trained
from .comparison import SweepComparison
from .grid import Trial
from .model_selection import Setting

NOISE, GAP = 0.05, 0.1
# Below 0 there is nothing to try.
_FROM_ZERO = {"label_smoothing", "weight_decay", "warmup", "dropout", "noise", "averaging", "momentum", "art_lambda"}
_NO_AXIS = {"seed"}


def sweep_warnings(
    heads: Sequence[Trained],
    settings: Sequence[Setting],
    comparison: SweepComparison,
    asked: Sequence[Trial],
    feature_set: FeatureSet,
) -> list[CodedWarning]:
    """The warnings about a sweep; docs/sweeps.md lists their codes.

    Args:
        heads: All heads.
        settings: Their settings.
        comparison: Who won.
        asked: The heads as the sweep file asks for them, whose defaults are still open: they say what varies.
        feature_set: What they were trained on.
    """
    useless = _useless(comparison, len(feature_set.class_names))
    no_higher = {"learning_rate"} if useless else set()
    return [
        *_diverged(heads),
        *useless,
        *_at_chance(comparison, feature_set),
        *_edges(settings, comparison, asked, no_higher),
        *_noise(comparison),
        *_overfit(comparison),
    ]


def _diverged(heads: Sequence[Trained]) -> list[CodedWarning]:
    lost = [head for head in heads if head.diverged]
    if not lost:
        return []
    rates = ", ".join(f"{rate:g}" for rate in sorted({head.config.step_size for head in lost}))
    message = f"{len(lost)} of {len(heads)} heads, with learning rates {rates}; none can be chosen"
    return [CodedWarning("diverged", message)]


def _useless(comparison: SweepComparison, num_classes: int) -> list[CodedWarning]:
    found = useless_loss(comparison.winner.setting.best, num_classes)
    return [replace(found, message=f"the winner: {_in_keys(found.message)}")] if found else []


def _in_keys(message: str) -> str:
    """A message with flags in the words of a sweep file."""
    return with_keywords(message).replace("`", "")


def _at_chance(comparison: SweepComparison, feature_set: FeatureSet) -> list[CodedWarning]:
    found = at_chance(comparison.winner.setting.best.val, feature_set, "val")
    return [CodedWarning(CHANCE, f"the winner's {found}")] if found else []


def _edges(
    settings: Sequence[Setting], comparison: SweepComparison, asked: Sequence[Trial], no_higher: set[str]
) -> list[CodedWarning]:
    """Where the winner's numbers are the outermost; the highest of those in ``no_higher`` is far enough."""
    winner = comparison.winner.setting
    config = winner.best.config
    wanted = [one.config for one in asked if _are_rivals(one.group, one.config, winner)]
    rivals = [one for one in settings if _are_rivals(one.group, one.best.config, winner)]
    enough = winner.mean("score") - _standard_error(winner)
    found = []
    for name in sorted(vars(config).keys() - _NO_AXIS - unused(config).keys()):
        value, values = getattr(config, name), {getattr(one.best.config, name) for one in rivals}
        varied = len({getattr(one, name) for one in wanted}) > 1
        if varied and len(values) > 1 and all(is_number(one) for one in values):
            flat = any(one.merit[0] >= enough for one in rivals if getattr(one.best.config, name) != value)
            side = _side(name, value, values)
            if side and not flat and not (side == "highest" and name in no_higher):
                message = f"the winner's {name}, {value:g}, is the {side} that was tried; try {_more(side)}"
                found.append(CodedWarning("edge", message))
    return found


def _are_rivals(group: str, config: TrainConfig, winner: Setting) -> bool:
    """Whether numbers can be compared: another loss or optimiser has others of its own."""
    best = winner.best.config
    return (group, config.loss, config.optimizer) == (winner.group, best.loss, best.optimizer)


def _standard_error(setting: Setting) -> float:
    """Of the score, at the most; what lies within one of the best is as good (Breiman et al., CART, 1984)."""
    select, score = setting.best.config.select, setting.mean("score")
    highest = 1.0 if isinstance(select, str) else sum(select)
    return math.sqrt(max(score * (highest - score), 0.0) / setting.best.val.n)


def _side(name: str, value: float, values: set[float]) -> str:
    if value == max(values):
        return "highest"
    return "lowest" if value == min(values) and not (value == 0 and name in _FROM_ZERO) else ""


def _more(side: str) -> str:
    return "higher ones" if side == "highest" else "lower ones"


def _noise(comparison: SweepComparison) -> list[CodedWarning]:
    winner = comparison.winner
    if comparison.baseline is None:
        message = (
            "softmax is not among the losses, so that nothing says what the winner's is worth; add `loss: softmax`, "
            "and a grid with p_k [1] and the same m, which is what pruning alone buys"
        )
        return [CodedWarning("no-baseline", message)]
    if winner.name == comparison.baseline:
        others = len(comparison.groups) > 1
        return [CodedWarning("baseline-best", "no other loss did better than plain cross-entropy")] if others else []
    if not comparison.tested:
        message = (
            f"there is no test split, and the validation rows chose the winner, so that they cannot say whether it is "
            f"better than {comparison.baseline} by more than chance"
        )
        return [CodedWarning("no-test", message)]
    tests = {name: test for name, test in winner.tests.items() if name in _judged(winner.setting.best.config)}
    beyond = [test.only_first - test.only_second for test in tests.values() if test.p_holm < NOISE]
    if any(lead > 0 for lead in beyond):
        return []
    said = ", ".join(
        f"{name} {test.only_first} rows won and {test.only_second} lost (p = {test.p_holm:.2g})"
        for name, test in tests.items()
    )
    place = "worse than" if beyond else "within noise of"
    return [CodedWarning("noise", f"the winner is {place} {comparison.baseline} on the test split: {said}")]


def _judged(config: TrainConfig) -> tuple[str, ...]:
    """The accuracies that the criterion is about."""
    return (config.select,) if config.select in ("top1", "top5") else ("top1", "top5")


def _overfit(comparison: SweepComparison) -> list[CodedWarning]:
    train, val = comparison.train.top1, comparison.winner.setting.best.val.top1
    if train - val <= GAP:
        return []
    message = (
        f"the winner has top-1 {train:.1%} on training rows and {val:.1%} on validation; more data, weight_decay or "
        "dropout may help"
    )
    return [CodedWarning("overfit", message)]
