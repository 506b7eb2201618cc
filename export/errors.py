"""The errors of an export: no file was written, or one that must not be deployed."""

from typing import Any

from ..core.errors import HeadsmithError


class ExportError(HeadsmithError, RuntimeError):
    """The exporter could not write the file, or wrote one that must not be deployed."""

    exit_code = 3


class UnsupportedOperatorError(ExportError):
    """The network has an operation, or a branch on values, that the format cannot say."""


class FixedBatchError(ExportError):
    """A batch axis that must be free was fixed on the way."""


class ParityError(ExportError):
    """An exported file does not answer as the Python module does, or that module is not what was trained.

    Attributes:
        report: What was compared, where it was files: a `ParityReport`, or a `GateReport` of a lower precision.
    """

    def __init__(self, message: str, report: Any = None) -> None:
        super().__init__(message)
        self.report = report


class GateError(ParityError):
    """A file in lower precision loses more than was allowed against the float32 file.

    Attributes:
        finding: What is wrong with it.
        head_alone: Only its head is beyond the precision, so that it may pass where that stays float32.
    """

    def __init__(self, finding: str, report: Any = None, *, advice: str = "", head_alone: bool = False) -> None:
        super().__init__(f"{finding}; {advice}" if advice else finding, report)
        self.finding, self.head_alone = finding, head_alone


def cause(error: BaseException) -> str:
    """The first line of the innermost exception, what a library stumbled over; its type where it has no text."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
