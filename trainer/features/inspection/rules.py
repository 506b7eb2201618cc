"""What was found in a feature set, judged: what would spoil a training, and what a person should know."""

from collections.abc import Mapping
from typing import Any

from ..columns import Columns
from ..consistency import contradictions
from ..copies import ACROSS, WITHIN, all_of
from ..images.samples import listed
from ..manifest import MANIFEST
from ..row_checksums import rows_sha256
from .neighbours import Neighbours
from .outliers import TIMES
from .report import Inspection, SplitReport
from .splits import few_rows

# Less than this share of a split moves its accuracy by less than chance does.
SPOILT_SHARE = 0.01
# Held-out rows that are so many times longer or shorter than training rows have another scale.
SCALE = 10
# What `import` notes and what is told here anyway.
_TOLD = ("ids in more than one split", "classes without a training row", ACROSS, WITHIN)


def judge(
    found: Inspection, manifest: Mapping[str, Any], columns: Mapping[str, Columns]
) -> tuple[list[str], list[str]]:
    """Problems and warnings, in words."""
    problems, warnings = [f"{MANIFEST}: {text}" for text in contradictions(manifest, columns)], list[str]()
    warnings += [text for text in manifest.get("warnings", []) if not any(told in text for told in _TOLD)]
    for split, report in found.splits.items():
        problems += _of_split(split, report, manifest, columns[split])
        for rows, what in ((report.zero, "are zero throughout"), (report.duplicates, "repeat an earlier one")):
            if rows is report.zero and rows.count == report.rows:
                problems.append(f"{split}: all {rows.count} rows are zero throughout; compute the features again")
            elif rows.count:
                warnings.append(f"{split}: {rows.count} rows ({rows.count / report.rows:.2%}) {what}: {rows}")
    if found.leaked_ids.count:
        problems.append(f"{found.leaked_ids.count} ids stand in more than one split: {listed(found.leaked_ids.ids)}")
    for split, rows in found.leaked_rows.items():
        share = rows.count / found.splits[split].rows
        whole = all_of(list(found.leaked_classes[split].items()))
        text = f"{split}: {rows.count} rows ({share:.2%}) are equal to rows of an earlier split{whole}: {rows}"
        (problems if share > SPOILT_SHARE else warnings).append(text)
    for split, lost in found.unanswered.items():
        (problems if lost.share > SPOILT_SHARE else warnings).append(f"{split}: {lost}")
    if "train" not in found.splits or sum(map(bool, found.splits["train"].histogram.values())) < 2:
        problems.append("train: fewer than two classes have rows")
    if "train" in columns and (few := few_rows(columns["train"], manifest)):
        warnings.append(few)
    if found.empty_classes:
        warnings.append(f"{len(found.empty_classes)} classes have no row: {listed(found.empty_classes)}")
    for report in found.splits.values():
        if (near := report.neighbours) is not None:
            other = found.splits[near.below].neighbours if near.below else None
            problems += [_guessing(near, other)] if near.doubtful else []
            warnings += [_below(near, other)] if other and not near.doubtful else []
    problems += _other_scale(found.splits)
    return problems, warnings


def _of_split(split: str, report: SplitReport, manifest: Mapping[str, Any], columns: Columns) -> list[str]:
    problems = []
    shape, expected = columns.features.shape, (manifest["splits"][split], manifest["feature_dim"])
    if shape != expected:
        problems.append(f"{split}: features {shape}, the manifest says {expected}")
    if rows_sha256(columns.names, columns.labels) != manifest["rows_sha256"].get(split):
        problems.append(f"{split}: ids and labels are not those that were written, or in another order")
    if report.as_written is False:
        problems.append(f"{split}: features are not those that were written, the file is damaged; make it again")
    for rows, what in (
        (report.nan, "NaN features"),
        (report.infinite, "infinite features"),
        (report.absurd, f"features over {TIMES:,.0f} times the usual ones"),
        (report.unlabelled, "no label among the classes"),
    ):
        if rows.count:
            problems.append(f"{split}: {rows.count} rows have {what}: {rows}")
    return problems


def _guessing(near: Neighbours, other: Neighbours | None) -> str:
    means = "" if near.means is None else f", nor do the nearest class means ({near.means:.1%})"
    against = "" if other is None else f", but that {_of(other)}"
    return (
        f"the {near.k} nearest training rows name the class {_of(near)}, no better than guessing ({near.chance:.1%}, "
        f"p = {near.p_value:.2g}){means}{against}: are these the labels of these rows?"
    )


def _below(near: Neighbours, other: Neighbours) -> str:
    return (
        f"the {near.k} nearest training rows name the class {_of(near)}, but that {_of(other)}: are these "
        "splits of one data set, backbone and preprocessing, with their own labels?"
    )


def _of(near: Neighbours) -> str:
    return f"of {near.accuracy:.1%} of {near.n} {near.split} rows"


def _other_scale(splits: Mapping[str, SplitReport]) -> list[str]:
    """Splits whose rows are far longer or shorter than the training rows: one backbone does not make them so."""
    train = splits["train"].typical_norm if "train" in splits else None
    return [
        f"{split}: the median norm is {report.typical_norm:.3g}, that of train {train:.3g}: "
        "are these features of the same backbone, scaled alike?"
        for split, report in splits.items()
        if train and report.typical_norm and not 1 / SCALE <= report.typical_norm / train <= SCALE
    ]
