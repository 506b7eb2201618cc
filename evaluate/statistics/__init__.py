"""Whether a difference between classifiers is real."""

from .paired import PairedDifference, bootstrap_difference, newcombe, paired_difference
from .ranking import Standing, holm, significance, standings

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
