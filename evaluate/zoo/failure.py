"""Why a classifier cannot be measured, in words."""

from ...core.errors import HeadsmithError
from ...core.printable import printable
from ...models.onnx_session import OrtErrors, short_reason


def failure(error: Exception, source: str) -> str:
    """One line about whatever a reader or a runtime raised.

    Args:
        error: What was raised.
        source: What was asked for.
    """
    if isinstance(error, HeadsmithError):
        return printable(str(error))
    kind = "" if isinstance(error, OrtErrors) else f"{type(error).__name__}: "
    return printable(f"{source}: {kind}{short_reason(error)}")
