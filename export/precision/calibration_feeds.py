"""What onnxruntime's tools read inputs from."""

from collections.abc import Iterable

from onnxruntime.quantization import CalibrationDataReader

from ..runtime import Array


class Feeds(CalibrationDataReader):  # type: ignore[misc]
    """Batches for the one input of a graph.

    Args:
        name: The input.
        batches: In the layout and dtype that it takes.
    """

    def __init__(self, name: str, batches: Iterable[Array]) -> None:
        self._feeds = ({name: batch} for batch in batches)

    def get_next(self) -> dict[str, Array] | None:
        """The next feed, ``None`` at the end."""
        return next(self._feeds, None)
