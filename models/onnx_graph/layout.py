"""How an ONNX network takes images: where their channels are, and as what numbers."""

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from ...core.errors import InputError
from ..preprocessing import Preprocessing


def layout_of(shape: Sequence[Any]) -> str | None:
    """``nchw`` or ``nhwc``, by the axis that has 3 channels; ``None`` where both or neither have."""
    first, last = shape[1] == 3, shape[-1] == 3
    return None if first == last else ("nchw" if first else "nhwc")


def check_pixels(images: ir.Value, recipe: Preprocessing, where: str) -> None:
    """Refuse a recipe that scales or shifts the pixels of a network which takes whole numbers: they would be cut off.

    Args:
        images: Its input.
        recipe: What is said of it.
        where: The file, for errors.

    Raises:
        InputError: Such a recipe.
    """
    plain = recipe.scale == 1 and recipe.mean == (0.0,) * 3 and recipe.std == (1.0,) * 3
    if images.dtype == ir.DataType.UINT8 and not plain:
        raise InputError(
            f"{where}: input {images.name} takes uint8 pixels, the recipe has scale {recipe.scale:g}, mean "
            f"{list(recipe.mean)} and std {list(recipe.std)}; expected scale 1, mean 0 and std 1, which leave 0..255"
        )
