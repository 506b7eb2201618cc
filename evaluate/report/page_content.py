"""What the page shows of a results folder."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from ...core.version import __version__
from ..benchmark.finished_benchmark import Benchmark
from ..results import Results
from .axis import axis
from .class_differences import class_differences, packed
from .confusions import Confusion, confusions
from .method_section import HEADINGS, method, setup
from .pairs import pairs
from .ranked_models import ranked_models
from .ranking_row import ReportRow, ranked
from .reliability_panels import panel
from .thumbnails import EDGE, thumbnails
from .tradeoff import HEIGHT, tradeoff

PICTURED = 8
SECTIONS = {
    "leaderboard": "Leaderboard",
    "ranking": "Ranking",
    "warnings": "Warnings",
    "cost": "Accuracy and its cost",
    "pairs": "Who beats whom",
    "groups": "Group by group",
    "reliability": "Reliability",
    "classes": "Class by class",
    "confusions": "Worst confusions",
    "method": "How it was measured",
}


def content(results: Results, benchmark: Benchmark | None = None) -> dict[str, Any]:
    """The names that the template uses.

    Args:
        results: What was measured.
        benchmark: What it was measured for, where that was a benchmark.

    Raises:
        InputError: No classifier was measured, or not all on the same inputs.
    """
    models = ranked_models(results)
    rows = [ranked(model) for model in models]
    best, scores = models[0], models[0].predictions.scores
    accuracies = {row.name: row.standing.accuracy for row in rows}
    correct = {model.name: model.predictions.scores.correct() for model in models}
    kind = "images" if any(model.result.setup.image_size for model in models) else "rows"
    multi_label, class_names = scores.multi_label, results.data.class_names
    compared = len(models) > 1 and not multi_label
    first, second = correct[best.name], correct[models[:2][-1].name]
    confused = {model.name: confusions(model) for model in models if model.result.confused is not None}
    pictures, note = _pictures(results, confused)
    warnings = [(row.name, warning) for row in rows for warning in row.warnings]
    said = None if benchmark is None else benchmark.record
    shown = {
        "leaderboard": said is not None,
        "warnings": bool(warnings),
        "pairs": len(models) > 1,
        "groups": bool(best.result.groups),
        "classes": not multi_label,
        "confusions": bool(confused),
    }
    ends = [end for share in accuracies.values() for end in (share.low, share.high)]
    return {
        "title": _title(rows) if benchmark is None or benchmark.winner is None else benchmark.headline,
        "lede": _lede(rows, kind) if said is None else f"{said.sentence[:1].upper()}{said.sentence[1:]}.",
        "benchmark": said,
        "providers": [] if said is None else list(dict.fromkeys(name for row in said.rows for name in row.providers)),
        "sections": {anchor: name for anchor, name in SECTIONS.items() if shown.get(anchor, True)},
        "data_name": PurePath(results.data.name).name,
        "kind": kind,
        "n": len(scores),
        "num_classes": len(class_names),
        "ranking": rows,
        "ks": sorted({k for row in rows for k in row.top if k != 1}),
        "axis": axis(ends, margin=0.02),
        "failed": results.failed,
        "warnings": warnings,
        "latency": tradeoff({row.name: row.latency.spread for row in rows if row.latency}, accuracies),
        "size": tradeoff(_sizes(rows), accuracies),
        "height": HEIGHT,
        "matrix": pairs(correct),
        "groups": {name: group.n for name, group in best.result.groups.items()},
        "by_group": {model.name: model.result.groups for model in models},
        "reliability": [panel(model.name, model.result.reliability) for model in models],
        "differences": class_differences(scores.labels, first, second, class_names) if compared else [],
        "packed": packed(scores.labels, correct, class_names) if compared else None,
        "best_classes": best.result.classes,
        "class_names": best.result.labels,
        "confusions": confused,
        "pictures": pictures,
        "pictures_note": note,
        "edge": EDGE,
        "method": method(results, models),
        "setup_headings": HEADINGS,
        "setup": [setup(model) for model in models],
        "version": __version__,
    }


def _sizes(rows: Sequence[ReportRow]) -> dict[str, tuple[float, float, float]]:
    """What each takes on disk; nothing where all take the same, which a chart could not show."""
    sizes = {row.name: (row.megabytes,) * 3 for row in rows if row.megabytes}
    return sizes if len(rows) == 1 or len({round(size[0], 1) for size in sizes.values()}) > 1 else {}


def _title(rows: Sequence[ReportRow]) -> str:
    if len(rows) == 1:
        return rows[0].name
    tied = sum(row.standing.tied for row in rows)
    if tied == 1:
        return f"{rows[0].name} is the best of {len(rows)} classifiers"
    if tied == len(rows):
        return f"{'Both' if tied == 2 else f'All {tied}'} classifiers are tied for the best"
    return f"{tied} of {len(rows)} classifiers are tied for the best"


def _lede(rows: Sequence[ReportRow], kind: str) -> str:
    best, rest = rows[0], rows[1:]
    share = best.standing.accuracy
    accuracy = f"{100 * share.value:.1f} % ({100 * share.low:.1f} to {100 * share.high:.1f})"
    if not rest:
        return f"Its first answer is right for {accuracy} of the {kind}."
    tied = [row.name for row in rest if row.standing.tied]
    text = f"{best.name} is right for {accuracy} of the {kind}. "
    if len(tied) == len(rest) > 1:
        return f"{text}None of the others can be told from it."
    if tied:
        verb = "cannot be told from it on these " + kind
        return f"{text}{_listed(tied)} {verb}{'; all others are worse' if len(tied) < len(rest) else ''}."
    return f"{text}{'All others are' if len(rest) > 1 else f'{rest[0].name} is'} worse by more than chance."


def _listed(names: Sequence[str]) -> str:
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _pictures(results: Results, confused: Mapping[str, Sequence[Confusion]]) -> tuple[dict[str, str], str]:
    """Pictures of the mistakes of the best classifiers, and a sentence about those that are missing."""
    wanted = [mistake.id for found in list(confused.values())[:PICTURED] for one in found for mistake in one.mistakes]
    pictures, reason = thumbnails(results, wanted)
    note = f"{'Some pictures' if pictures else 'Pictures'} are missing: {reason}." if reason else ""
    if len(confused) > PICTURED:
        note = f"Pictures are shown for the {PICTURED} best models. {note}"
    return pictures, note.strip()
