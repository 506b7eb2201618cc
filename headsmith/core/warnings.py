"""Doubts, and which of them make a result worthless. A doubt is a sentence that begins with its code and a colon."""

from collections.abc import Iterable

AT_CHANCE, NO_ANSWER, RUNAWAY = "chance level", "no answer", "runaway loss"
WORTHLESS = (AT_CHANCE, NO_ANSWER, RUNAWAY)
# The status of a command whose result was written, and says nothing.
STATUS = 4


def are_worthless(doubts: Iterable[str]) -> bool:
    """Whether one of the doubts is that the result is no better than none."""
    return any(doubt.startswith(tuple(f"{code}:" for code in WORTHLESS)) for doubt in doubts)
