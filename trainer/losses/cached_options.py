"""The options of a call, built and checked once for all calls that ask the same."""

from functools import lru_cache
from typing import Any, Unpack

import torch

from ..loss_options import LossKeywords, LossOptions


def loss_options(**options: Unpack[LossKeywords]) -> LossOptions:
    """The options of a call; equal ones are built and checked once, so that a training step does not pay for them."""
    if torch.compiler.is_compiling():
        return LossOptions(**options)
    try:
        return _built_once(**options)
    except TypeError:  # a value that cannot be hashed, which its check refuses by name
        return LossOptions(**options)


def changed(options: LossOptions, **changes: Any) -> LossOptions:
    """The same options but for `changes`."""
    return _changed(options, **changes) if torch.compiler.is_compiling() else _changed_once(options, **changes)


@lru_cache(typed=True)
def _built_once(**options: Any) -> LossOptions:
    built = LossOptions(**options)
    built.remember_text()
    return built


def _changed(options: LossOptions, **changes: Any) -> LossOptions:
    return LossOptions(**{name: getattr(options, name) for name in LossOptions.__dataclass_fields__} | changes)


_changed_once = lru_cache(typed=True)(_changed)
