"""A preprocessing recipe in a settings file, for networks that do not bring their own."""

import math
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..core.errors import InputError, near
from ..core.yaml_file import read_yaml
from .preprocessing import Preprocessing

PAIRS, TRIPLES = ("resize_size", "crop_size"), ("mean", "std", "background")
OPTIONAL = ("antialias", "layout", "background")


def read_recipe(path: str | Path, layout: str | None) -> Preprocessing:
    """Read a recipe.

    Args:
        path: A YAML file; see `recipe_of` for its keys.
        layout: See `recipe_of`.

    Raises:
        InputError: The file is missing or no YAML, or see `recipe_of`.
    """
    return recipe_of(read_yaml(path), str(path), layout)


def recipe_of(values: Any, where: str, layout: str | None) -> Preprocessing:
    """A recipe from its keys.

    They are the fields of `Preprocessing`; ``resize_size`` and ``crop_size`` may be one edge in pixels, ``mean`` and
    ``std`` one number for all channels, ``background`` three whole numbers or one. All must be there, but
    ``antialias``, ``layout`` and ``background``, which is white.

    Args:
        values: The keys with their values.
        where: What holds them, for errors.
        layout: What the network's input shape says; ``None`` where it could be either, so that the keys must say it.

    Raises:
        InputError: A key is unknown, missing or of another kind.
    """
    if not isinstance(values, dict):
        raise InputError(f"{where}: holds {type(values).__name__}, expected keys such as resize_size: 256")
    known = [field.name for field in fields(Preprocessing)]
    for key in values:
        if key not in known:
            raise InputError(f"{where}: {key} is not known; expected some of {', '.join(known)}{near(str(key), known)}")
    lacking = [key for key in known if key not in values and key not in OPTIONAL]
    if lacking:
        raise InputError(f"{where}: {', '.join(lacking)} missing; a recipe is never guessed, see the network's page")
    layout = values.get("layout", layout)
    if layout is None:
        raise InputError(f"{where}: the network's input could be of either layout; say layout: nchw or layout: nhwc")
    given = {key: _spread(where, key, value) for key, value in (values | {"layout": layout}).items()}
    try:
        return Preprocessing(**given)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _spread(where: str, key: str, value: Any) -> Any:
    """One number for two edges or three channels, else as many as there are."""
    if key == "scale":
        return _number(where, key, value)
    if key not in (*PAIRS, *TRIPLES):
        return value
    count = 2 if key in PAIRS else 3
    numbers = value if isinstance(value, list) else [value] * count
    if len(numbers) != count:
        raise InputError(f"{where}: {key} holds a list of {len(numbers)}, expected one number or a list of {count}")
    found = tuple(_number(where, key, number) for number in numbers)
    return tuple(map(int, found)) if key in (*PAIRS, "background") else found


def _number(where: str, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{where}: {key} holds {value!r}, expected a number")
    if (key in ("std", "scale", *PAIRS) and value <= 0) or (key in PAIRS and value != int(value)):
        raise InputError(
            f"{where}: {key} holds {value!r}, expected {'whole pixels' if key in PAIRS else 'more than 0'}"
        )
    if key == "background" and value not in range(256):
        raise InputError(f"{where}: background holds {value!r}, expected whole numbers from 0 to 255")
    return float(value)
