"""Warnings about a result, under codes that stay the same, and which of them make it worthless."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

CHANCE, RUNAWAY = "chance", "runaway"
WORTHLESS = (CHANCE, "no-answer", RUNAWAY)
AT_CHANCE, NO_ANSWER = "chance level", "no answer"
# The status of a command whose result was written, and says nothing.
STATUS = 4
# How the sentences of version 1 of the files begin, where their code is read again.
_OLD = {AT_CHANCE: CHANCE, NO_ANSWER: "no-answer", "runaway loss": RUNAWAY}


@dataclass(frozen=True)
class CodedWarning:
    """A warning about a run, a sweep, a measurement or a feature set, as its file holds it.

    Attributes:
        code: What kind it is: lower-case words with hyphens, which stay the same from version to version.
        message: What was found, and what to do, in words.
    """

    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    @classmethod
    def of_text(cls, text: str) -> Self:
        """A sentence of a file of version 1, which began with its code where it had one."""
        start, _, rest = text.partition(": ")
        return cls(_OLD[start], rest) if start in _OLD else cls("uncoded", text)


def of_texts(values: Iterable[Any]) -> list[Any]:
    """The warnings of a file as JSON values, each with its code; those of version 1 were sentences."""
    return [vars(CodedWarning.of_text(one)) if isinstance(one, str) else one for one in values]


def are_worthless(warnings: Iterable[CodedWarning | str]) -> bool:
    """Whether one of the warnings is that the result is no better than none."""
    coded = (CodedWarning.of_text(one) if isinstance(one, str) else one for one in warnings)
    return any(warning.code in WORTHLESS for warning in coded)
