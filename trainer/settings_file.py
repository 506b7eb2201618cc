"""Settings in a YAML file."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import Any

from ..core.errors import InputError, near
from ..core.printable import short, shown
from ..core.yaml_file import read_yaml

# What stands in a sweep file beside settings; the first in one that is a preset written out.
PRESET_KEYS = ("source", "note", "settings", "losses", "rungs", "unit_features")
SWEEP_KEYS = (*PRESET_KEYS, "preset", "grids", "final_seeds", "name")
# Settings by name, or lists of values for them, before `TrainConfig` or a grid checks each.
GivenSettings = dict[str, Any]


def read_settings(path: str | Path, settings: type) -> GivenSettings:
    """The settings that a YAML file spells out.

    Args:
        path: The file.
        settings: The dataclass whose fields they are.

    Raises:
        InputError: The file is missing, is not YAML, or has an unknown key.
    """
    values: Any = read_yaml(path)
    known = [field.name for field in fields(settings)]
    if not isinstance(values, dict):
        found = "nothing" if values is None else shown(values)
        raise InputError(f"{path}: {found} found, expected settings such as `loss: softmax`")
    for name, value in values.items():
        if name in SWEEP_KEYS or _is_axis(name, value):
            what = "is for a sweep" if name in SWEEP_KEYS else f"{shown(value)} found, a list of values"
            raise InputError(
                f"{path}: {name}: {what}; `headsmith sweep` takes such a file, a single run one value a setting"
            )
        if name not in known:
            raise InputError(f"{path}: {no_setting(name, known)}")
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}


@contextmanager
def read_from(path: str | Path | None, names: Collection[str]) -> Iterator[None]:
    """Let an error about a setting begin with the file that spells it out.

    Args:
        path: The file.
        names: The settings that it decides.
    """
    try:
        yield
    except InputError as error:
        if error.keyword in names:
            raise type(error)(f"{path}: {error}") from None
        raise


def _is_axis(name: str, value: Any) -> bool:
    """Whether a file tries several values of a setting; a list of numbers is one value of ``p_k`` and ``select``."""
    if not isinstance(value, list):
        return False
    return name not in ("p_k", "select") or any(isinstance(one, list | str | NoneType) for one in value)


def no_setting(name: Any, known: Collection[str]) -> str:
    """What is said of a key that is no setting, with the names near it or else all."""
    hint = near(str(name), known) or f"; expected some of {', '.join(known)}"
    return f"{short(str(name))}: is no setting{hint}"
