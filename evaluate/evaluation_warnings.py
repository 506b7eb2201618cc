"""What makes a measurement worth a second look; `docs/evaluation.md` lists the codes."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..core.coded_warnings import CodedWarning
from ..core.counted import counted
from ..core.errors import with_keywords
from ..export.bundle.bundle import Bundle
from ..export.provenance import path_inside
from ..metrics.chance import like_guesses
from ..trainer.features.images.samples import split_called
from .measuring.one_pass import Measurement
from .metrics import Summary
from .result import BROKEN

DOMINANT, BALANCED = 0.9, 0.5


def warnings_of(summary: Summary, measured: Measurement, chance: float, trained_on: bool) -> list[CodedWarning]:
    """Look for what is rarely right.

    Args:
        summary: The figures.
        measured: The pass that they come from.
        chance: Share of the inputs that naming always the same class has right.
        trained_on: Whether the inputs lie in the training split of the classifier's own source.
    """
    found, top1 = dict[str, str](), measured.scores.correct()
    if trained_on:
        found["trained-on"] = "the head was trained on these images; measure on others"
    if summary.nan == summary.n:
        found["no-answer"] = f"every one of {summary.n} inputs has NaN among its logits"
    elif chance < 1 and like_guesses(int(top1.sum()), len(top1), chance):
        found["chance"] = (
            f"top-1, {top1.mean():.1%}, cannot be told from guessing: the most frequent class, always named, is right "
            f"for {chance:.1%}"
        )
    if summary.predicted_share > DOMINANT and summary.label_share is not None and summary.label_share < BALANCED:
        found["one-class"] = f"one class takes {summary.predicted_share:.0%} of the predictions"
    if measured.not_finite:
        found["not-finite"] = f"{counted(measured.not_finite, 'input has', 'inputs have')} NaN or infinite logits"
    if measured.varies:
        found["varying"] = (
            "it answers the same input differently each time, so that the figures hold for this run alone: it draws "
            "random numbers, as dropout does in training mode"
        )
    if measured.batch_dependent:
        found["batch-dependent"] = (
            "an input has other logits in a batch of another size: its answers depend on what lies beside it"
        )
    if measured.inconsistent:
        found["wrong-topk"] = (
            f"{counted(measured.inconsistent, 'input has', 'inputs have')} topk_indices against the file's own logits"
        )
    return [*(CodedWarning(code, message) for code, message in found.items()), *broken_at(measured.not_finite_at)]


def broken_at(sizes: Sequence[int]) -> list[CodedWarning]:
    """A warning of the batch sizes, if any, at which answers are NaN or infinite that are not at others."""
    listed = ", ".join(map(str, sizes))
    return [CodedWarning(BROKEN, f"its answers are NaN or infinite at a batch size of {listed}")] * bool(sizes)


def in_keywords(warnings: Iterable[CodedWarning]) -> list[CodedWarning]:
    """The same with keywords in the place of flags, as `InputError` has them."""
    return [CodedWarning(one.code, with_keywords(one.message)) for one in warnings]


def was_trained_on(data: str, bundle: Bundle | None) -> bool:
    """Whether ``data`` lies in the training split of the folder that a bundle's features came from, if it is known."""
    inside = path_inside(Path(data), bundle.manifest.features) if bundle else None
    return bool(inside and split_called(inside[0]) == "train")
