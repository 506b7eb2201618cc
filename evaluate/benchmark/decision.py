"""Which row to deploy, why, and how sure that is.

Validation chooses, within the bounds; the test split is a held-back part that chooses nothing. So the winner's accuracy
on it is that of one classifier, whose Wilson interval holds however many were compared, and so do McNemar's tests of
the others against it, by Holm over these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.coded_warnings import CodedWarning
from ...metrics.paired import ALPHA, PairedDifference, holm, paired_difference
from ...metrics.proportions import Share
from .benchmark_record import BASELINE, HEAD, BenchmarkRow

Array = np.ndarray[Any, Any]
UNITS = {"latency": "ms", "size": "MB", "memory": "MB"}
NAMED = 3


@dataclass(frozen=True)
class Comparison:
    """A row beside the winner on the same test images; ``p`` is by Holm over all of them."""

    difference: PairedDifference
    p: float

    @property
    def tied(self) -> bool:
        """Whether the test images cannot tell the two apart."""
        return self.p >= ALPHA


def cost(row: BenchmarkRow, name: str) -> float | None:
    """What a row costs by the name of a bound, in its unit; ``None`` where that was not measured."""
    latency = None if row.latency is None else row.latency.p50
    return {"latency": latency, "size": row.file_mb, "memory": row.memory_mb}[name]


def excess(row: BenchmarkRow, bounds: Mapping[str, float]) -> float:
    """By which factor a row exceeds the bound that it exceeds most; at most 1 within all, infinite where unknown."""
    costs = {name: cost(row, name) for name in bounds}
    return max((float("inf") if found is None else found / bounds[name] for name, found in costs.items()), default=0.0)


def choose(rows: Sequence[BenchmarkRow], bounds: Mapping[str, float]) -> BenchmarkRow | None:
    """The best on validation among the measured heads within the bounds, or the one that is nearest to them.

    Between equals in top-1 decide top-5, then the latency, then the size of the file.
    """
    candidates = [row for row in rows if row.kind == HEAD and row.top1 is not None and row.val_top1 is not None]
    within = [row for row in candidates if excess(row, bounds) <= 1]
    if within:
        return max(within, key=_merit)
    return min(candidates, key=lambda row: (excess(row, bounds), tuple(-part for part in _merit(row))), default=None)


def _merit(row: BenchmarkRow) -> tuple[float, ...]:
    shares = [0.0 if share is None else share.value for share in (row.val_top1, row.val_top5)]
    costs = [cost(row, name) for name in ("latency", "size")]
    return *shares, *(-float("inf") if found is None else -found for found in costs)


def compared(winner: str, correct: Mapping[str, tuple[Sequence[str], Array]]) -> dict[str, Comparison]:
    """Every other row beside the winner, where both have the image.

    Args:
        winner: Its name.
        correct: For each row the ids of its test images and whether each is right.
    """
    ids, right = correct[winner]
    place = {name: number for number, name in enumerate(ids)}
    found: dict[str, PairedDifference] = {}
    for name, (own_ids, own) in correct.items():
        both = [(number, place[one]) for number, one in enumerate(own_ids) if one in place]
        if name != winner and both:
            mine, its = np.array(both).T
            found[name] = paired_difference(own[mine], right[its])
    adjusted = holm(np.array([one.p for one in found.values()]))
    return {name: Comparison(one, float(p)) for (name, one), p in zip(found.items(), adjusted, strict=True)}


def sentence(winner: BenchmarkRow, rows: Sequence[BenchmarkRow], bounds: Mapping[str, float]) -> str:
    """What to deploy, why, and how sure that is, in one sentence."""
    heads = [row for row in rows if row.kind == HEAD and row.top1 is not None]
    within = [row for row in heads if row.within]
    said = " and ".join(f"--{name} {bound:g} {UNITS[name]}" for name, bound in bounds.items())
    if bounds and not within:
        costs = ", ".join(f"{_figure(cost(winner, name))} {UNITS[name]}" for name in bounds)
        why = f"none of {len(heads)} is within {said}, and {winner.name} is the nearest with {costs}: it is"
        start = why
    else:
        among = f"{len(within)} of {len(heads)} that are within {said}" if bounds else f"{len(heads)}"
        best = f"the best of {among} on validation" if len(within or heads) > 1 else "the only one measured"
        start = f"deploy {winner.name}, {best} ({_percent(winner.val_top1)}):"
    share = winner.top1
    if share is None:
        return start
    sure = (
        f"right for {100 * share.value:.1f} % ({100 * share.low:.1f} to {100 * share.high:.1f}) of {share.n:,} test "
        "images that chose nothing"
    )
    return f"{start} {sure}; {_rivals(winner, rows)}"


def _rivals(winner: BenchmarkRow, rows: Sequence[BenchmarkRow]) -> str:
    others = [row for row in rows if row.name != winner.name and row.tied is not None and row.kind != BASELINE]
    others = [row for row in others if row.within is not False or not winner.within]
    tied = [row for row in others if row.tied]
    if not others:
        return "nothing was there to compare it with"
    if not tied:
        return "every other differs from it by more than chance"
    text = f"not to be told from it {'is' if len(tied) == 1 else 'are'} {_listed([row.name for row in tied])}"
    faster = [row for row in tied if row.latency and winner.latency and row.latency.p90 < winner.latency.p10]
    if faster and winner.latency:
        best = min(faster, key=lambda row: row.latency.p50 if row.latency else 0.0)
        p50 = best.latency.p50 if best.latency else 0.0
        text += f", of which {best.name} is the fastest ({p50:.3g} ms, against {winner.latency.p50:.3g})"
    return text


def doubts(winner: BenchmarkRow, rows: Sequence[BenchmarkRow], bounds: Mapping[str, float]) -> list[CodedWarning]:
    """What makes the choice doubtful."""
    found = []
    if bounds and not winner.within:
        found.append(CodedWarning("no-bound-met", f"nothing meets the bounds; {winner.name} is the nearest"))
    ahead = [row for row in rows if row.tied is False and (row.difference or 0) > 0]
    for row in ahead:
        what = "needs no training, and" if row.kind == BASELINE else ""
        found.append(
            CodedWarning(
                "overtaken",
                f"{row.name} {what} has {100 * (row.difference or 0):.1f} points more than {winner.name} on the test "
                "images, beyond chance, but validation chose otherwise".replace("  ", " "),
            )
        )
    idle = [row.name for row in rows if row.kind == BASELINE and row.tied]
    if idle:
        found.append(CodedWarning("no-gain", f"{_listed(idle)}, without training, cannot be told from {winner.name}"))
    return found


def _listed(names: Sequence[str]) -> str:
    if len(names) > NAMED + 1:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _percent(share: Share | None) -> str:
    return "n/a" if share is None else f"{100 * share.value:.1f} %"


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"
