"""Weights of ranks in the presets of our own, which were chosen on sets of many classes."""

import dataclasses
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from .objective_settings import ObjectiveSettings

C = TypeVar("C", bound="ObjectiveSettings")


class PresetWeights(tuple[float, ...]):
    """Weights of top-1, top-2, ... that a preset of our own says; a user's are a plain tuple, and stand."""

    __slots__ = ()


def for_classes(config: C, num_classes: int) -> C:
    """The settings with the default ``p_k``, and top-1 to select by, where a preset's weights are as many as classes.

    Args:
        config: The settings.
        num_classes: C.
    """
    p_k, select = config.p_k, config.select
    if isinstance(p_k, PresetWeights):
        config = dataclasses.replace(config, p_k=tuple(p_k) if len(p_k) < num_classes else None)
    if isinstance(select, PresetWeights):
        config = dataclasses.replace(config, select=tuple(select) if len(select) < num_classes else "top1")
    return config
