"""What is measured from logits and right classes, row by row and over all rows."""

from ...metrics.calibration import Reliability, reliability
from .agreement import Agreement, agreement
from .classes import ClassTable, ConfusedPairs, class_table, confused_pairs
from .multi_label import right_classes
from .row_scores import RowScores, score_rows
from .scorer import Scorer
from .selective import Selective, selective
from .summary import Summary, summarize, summarize_groups

__all__ = [
    "Agreement",
    "ClassTable",
    "ConfusedPairs",
    "Reliability",
    "RowScores",
    "Scorer",
    "Selective",
    "Summary",
    "agreement",
    "class_table",
    "confused_pairs",
    "reliability",
    "right_classes",
    "score_rows",
    "selective",
    "summarize",
    "summarize_groups",
]
