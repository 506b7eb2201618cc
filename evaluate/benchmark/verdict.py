"""What is said of the choice: a headline, one sentence, and warnings."""

from collections.abc import Mapping, Sequence

from ...core.coded_warnings import CodedWarning
from ...core.counted import counted
from ...metrics.proportions import Share
from .benchmark_record import ALSO, BASELINE, BenchmarkRow
from .decision import UNITS, candidates, cost
from .trained_rows import PRUNED

NAMED = 3
CHANCE = "chance"


def headline(winner: BenchmarkRow, rows: Sequence[BenchmarkRow], bounds: Mapping[str, float]) -> str:
    """What to deploy, or that nothing meets the bounds and what is nearest to them."""
    if not bounds or winner.within:
        return f"Deploy {winner.name}"
    return f"None of {len(candidates(rows))} is within {_said(bounds)}; nearest: {winner.name}"


def sentence(winner: BenchmarkRow, rows: Sequence[BenchmarkRow], bounds: Mapping[str, float]) -> str:
    """What to deploy, why, and how sure that is, in one sentence."""
    start = headline(winner, rows, bounds)
    start = start[:1].lower() + start[1:]
    if not bounds or winner.within:
        start += f", {_why(winner, rows, bounds)}"
    else:
        start += f", with {', '.join(f'{_figure(cost(winner, name))} {UNITS[name]}' for name in bounds)}"
    start += _no_better(winner, rows)
    left_out = sum(row.state == PRUNED for row in rows)
    end = f"; {counted(left_out, 'file was', 'files were')} left out for the budget" if left_out else ""
    share = winner.top1
    if share is None:
        return start + end
    sure = (
        f"right for {100 * share.value:.1f} % ({100 * share.low:.1f} to {100 * share.high:.1f}) of {share.n:,} test "
        "images that chose nothing"
    )
    return f"{start}: {sure}; {_rivals(winner, rows)}{end}"


def _why(winner: BenchmarkRow, rows: Sequence[BenchmarkRow], bounds: Mapping[str, float]) -> str:
    """The place on validation, and what decided between equals."""
    heads = candidates(rows)
    within = [row for row in heads if row.within] if bounds else heads
    share = _percent(winner.val_top1)
    among = f"{len(within)} of {len(heads)} that are within {_said(bounds)}" if bounds else f"{len(heads)}"
    if len(within) < 2:
        only = f"the only one of {len(heads)} within {_said(bounds)}" if bounds else "the only one measured"
        return f"{only} ({share} on validation)"
    level = [row for row in within if row.name != winner.name and _validation(row) == _validation(winner)]
    if not level:
        return f"the best of {among} on validation ({share})"
    others = counted(len(level), "other", "others")
    return (
        f"best of {among} but level with {others} on validation ({share}), chosen for lower latency (then size, then "
        "name)"
    )


def _no_better(winner: BenchmarkRow, rows: Sequence[BenchmarkRow]) -> str:
    """What the winner is no better than: guessing on the test images, or what needs no training on validation."""
    untrained = [
        row for row in rows if row.kind == BASELINE and row.val_top1 and _validation(row) >= _validation(winner)
    ]
    found = ["guessing on the test images"] * any(one.code == CHANCE for one in winner.warnings)
    if untrained:
        best = max(_validation(row) for row in untrained)
        found.append(f"{_listed([row.name for row in untrained])}, without training ({100 * best:.1f} % on validation)")
    return f", no better than {' nor than '.join(found)}" if found else ""


def _rivals(winner: BenchmarkRow, rows: Sequence[BenchmarkRow]) -> str:
    others = [row for row in rows if row.name != winner.name and row.tied is not None and row.kind != BASELINE]
    others = [row for row in others if row.kind == ALSO or row.within is not False or not winner.within]
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
    """What makes the choice doubtful, the winner's own warnings last."""
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
    return [*found, *(CodedWarning(one.code, f"{winner.name}: {one.message}") for one in winner.warnings)]


def _said(bounds: Mapping[str, float]) -> str:
    return " and ".join(f"--{name} {bound:g} {UNITS[name]}" for name, bound in bounds.items())


def _validation(row: BenchmarkRow) -> float:
    return 0.0 if row.val_top1 is None else row.val_top1.value


def _listed(names: Sequence[str]) -> str:
    if len(names) > NAMED + 1:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _percent(share: Share | None) -> str:
    return "n/a" if share is None else f"{100 * share.value:.1f} %"


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"
