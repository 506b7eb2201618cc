"""Where the channels of an ONNX network's images are."""

from collections.abc import Sequence
from typing import Any


def layout_of(shape: Sequence[Any]) -> str | None:
    """``nchw`` or ``nhwc``, by the axis that has 3 channels; ``None`` where both or neither have."""
    first, last = shape[1] == 3, shape[-1] == 3
    return None if first == last else ("nchw" if first else "nhwc")
