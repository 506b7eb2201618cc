"""Whether a difference between classifiers is real."""

from ...metrics.paired import PairedDifference, bootstrap_difference, holm, newcombe, paired_difference
from .standings import Standing, significance, standings

__all__ = [
    "PairedDifference",
    "Standing",
    "bootstrap_difference",
    "holm",
    "newcombe",
    "paired_difference",
    "significance",
    "standings",
]
