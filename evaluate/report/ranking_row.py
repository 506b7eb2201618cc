"""A line of the ranking."""

from dataclasses import dataclass

from ...core.coded_warnings import CodedWarning
from ...metrics.proportions import Share
from ..measuring.published import Verdict
from ..measuring.speed_figures import Latency
from ..statistics import Standing
from .ranked_models import RankedModel


@dataclass(frozen=True)
class ReportRow:
    """What the ranking says of a classifier.

    Attributes:
        name: See `RankedModel`.
        standing: Its place.
        top: Top-k for each k that was asked for; ``None`` with fewer classes.
        subset: Top-1 where only the classes of the held-out set may be answered; ``None`` where that is all.
        mean_recall: See `metrics.Summary`.
        nll: See there.
        ece: See there.
        latency: Milliseconds for one input; ``None`` where it was not measured.
        per_second: Inputs a second through the runtime.
        megabytes: Size of the file.
        parameters: In millions.
        published: What its authors say of it.
        warnings: See `EvalResult`.
    """

    name: str
    standing: Standing
    top: dict[int, Share | None]
    subset: Share | None
    mean_recall: float | None
    nll: float | None
    ece: float | None
    latency: Latency | None
    per_second: float | None
    megabytes: float
    parameters: float | None
    published: Verdict | None
    warnings: list[CodedWarning]


def ranked(model: RankedModel) -> ReportRow:
    """Collect the figures of a classifier."""
    result = model.result
    summary, speed, verdict = result.summary, result.speed, result.verdict
    parameters = result.setup.parameters
    return ReportRow(
        name=model.name,
        standing=model.standing,
        top=summary.top,
        subset=result.subset.top.get(1) if result.subset else None,
        mean_recall=summary.mean_recall,
        nll=summary.nll,
        ece=summary.ece,
        latency=speed.latency,
        per_second=speed.images_per_second or None,
        megabytes=result.setup.bytes / 1e6,
        parameters=None if parameters is None else parameters / 1e6,
        published=verdict if verdict and verdict.difference is not None else None,
        warnings=result.warnings,
    )
