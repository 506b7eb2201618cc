"""What was found in a feature set, judged: what would spoil a training, and what a person should know."""

from collections.abc import Mapping

from ....core.coded_warnings import CodedWarning
from ....core.counted import counted
from ....core.listed import listed
from ..columns import Columns
from ..copies import all_of
from ..manifest import MANIFEST, FeatureSetManifest, contradictions
from ..split_checksums import rows_sha256
from .neighbours import Neighbours
from .outliers import TIMES
from .report import Inspection, SplitReport
from .split_coverage import few_rows

# Less than this share of a split moves its accuracy by less than chance does.
SPOILT_SHARE = 0.01
# Held-out rows that are so many times longer or shorter than training rows have another scale.
SCALE = 10
# Of what was told when the set was made, what is told here anyway, of every row.
_TOLD = ("leak", "copies", "shared-ids", "unanswerable")


def judge(
    found: Inspection, manifest: FeatureSetManifest, columns: Mapping[str, Columns]
) -> tuple[list[CodedWarning], list[CodedWarning]]:
    """Problems and warnings."""
    problems = [CodedWarning("edited", f"{MANIFEST}: {text}") for text in contradictions(manifest, columns)]
    warnings = [warning for warning in manifest.warnings if warning.code not in _TOLD]
    for split, report in found.splits.items():
        problems += _of_split(split, report, manifest, columns[split])
        kinds = (
            ("zero-rows", report.zero, ("is zero throughout", "are zero throughout")),
            ("copies", report.duplicates, ("repeats an earlier one", "repeat an earlier one")),
        )
        for code, rows, what in kinds:
            if rows is report.zero and rows.count == report.rows:
                text = f"{split}: all {rows.count} rows are zero throughout; compute the features again"
                problems.append(CodedWarning(code, text))
            elif rows.count:
                share = rows.count / report.rows
                text = f"{split}: {counted(rows.count, 'row')} ({share:.2%}) {what[rows.count > 1]}: {rows}"
                warnings.append(CodedWarning(code, text))
    if found.leaked_ids.count:
        ids = found.leaked_ids
        text = f"{counted(ids.count, 'id is', 'ids are')} in more than one split: {listed(ids.ids)}"
        problems.append(CodedWarning("shared-ids", text))
    for split, rows in found.leaked_rows.items():
        share = rows.count / found.splits[split].rows
        whole = all_of(list(found.leaked_classes[split].items()))
        are = "is equal to one" if rows.count == 1 else "are equal to rows"
        text = f"{split}: {counted(rows.count, 'row')} ({share:.2%}) {are} of an earlier split{whole}: {rows}"
        (problems if share > SPOILT_SHARE else warnings).append(CodedWarning("leak", text))
    for split, lost in found.unanswered.items():
        kept = problems if lost.share > SPOILT_SHARE else warnings
        kept.append(CodedWarning("unanswerable", f"{split}: {lost}"))
    if "train" not in found.splits or sum(map(bool, found.splits["train"].histogram.values())) < 2:
        problems.append(CodedWarning("one-class", "train: fewer than two classes have rows"))
    if "train" in columns and (few := few_rows(columns["train"], manifest)):
        warnings.append(CodedWarning("few-rows", few))
    if found.empty_classes:
        text = f"{counted(len(found.empty_classes), 'class has', 'classes have')} no row: {listed(found.empty_classes)}"
        warnings.append(CodedWarning("empty-classes", text))
    for report in found.splits.values():
        if (near := report.neighbours) is not None:
            other = found.splits[near.below].neighbours if near.below else None
            problems += [CodedWarning("chance", _at_chance(near, other))] if near.at_chance else []
            warnings += [CodedWarning("unlike", _below(near, other))] if other and not near.at_chance else []
    problems += [CodedWarning("scale", text) for text in _other_scale(found.splits)]
    return problems, warnings


def _of_split(split: str, report: SplitReport, manifest: FeatureSetManifest, columns: Columns) -> list[CodedWarning]:
    problems = list[tuple[str, str]]()
    shape, expected = columns.features.shape, (manifest.splits[split], manifest.feature_dim)
    if shape != expected:
        problems.append(("damaged", f"features {shape}, the manifest says {expected}"))
    if rows_sha256(columns.names, columns.labels) != manifest.rows_sha256.get(split):
        problems.append(("damaged", "ids and labels are not those that were written, or in another order"))
    if report.as_written is False:
        problems.append(("damaged", "features are not those that were written, the file is damaged; make it again"))
    for code, rows, what in (
        ("nan", report.nan, "NaN features"),
        ("infinite", report.infinite, "infinite features"),
        ("outliers", report.absurd, f"features over {TIMES:,.0f} times the usual ones"),
        ("unlabelled", report.unlabelled, "no label among the classes"),
    ):
        if rows.count:
            problems.append((code, f"{counted(rows.count, 'row has', 'rows have')} {what}: {rows}"))
    return [CodedWarning(code, f"{split}: {text}") for code, text in problems]


def _at_chance(near: Neighbours, other: Neighbours | None) -> str:
    means = "" if near.means is None else f", nor do the nearest class means ({near.means:.1%})"
    against = "" if other is None else f", but that {_of(other)}"
    return (
        f"the {near.k} nearest training rows name the class {_of(near)}, no better than in random order "
        f"({near.shuffled:.1%}, p = {near.p_value:.2g}){means}{against}: are these the labels of these rows?"
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
