"""The settings of a run with every default filled in, for its features and its number of classes."""

import dataclasses
from typing import TypeVar

from torch import Tensor

from ..core.environment import pick_device
from ..core.errors import InputError
from .criterion import criterion
from .feature_scale import column_size, rate_factor
from .few_classes import for_classes
from .losses import default_inverse_temperature
from .objective_settings import ObjectiveSettings
from .train_config import EPOCHS, PATIENCE, PATIENCE_STEPS, STEPS, TrainConfig

_DEFAULT_RANKS = 5
C = TypeVar("C", bound=ObjectiveSettings)


def default_p_k(num_classes: int) -> tuple[float, ...]:
    """Half top-1 and half top-5; of fewer than six classes, half the last rank that can be wrong."""
    last = min(_DEFAULT_RANKS, num_classes - 1)
    return (1.0,) if last == 1 else (0.5, *[0.0] * (last - 2), 0.5)


def resolve_loss(config: C, num_classes: int) -> C:
    """The settings with every default of the loss filled in.

    Args:
        config: The settings.
        num_classes: C.

    Raises:
        InputError: Settings that the loss does not take, or weights for more ranks than there are classes.
    """
    config = for_classes(config, num_classes)
    if config.p_k is None and config.loss != "softmax":
        config = dataclasses.replace(config, p_k=default_p_k(num_classes))
    _check_candidates(config)
    asked = criterion(config)
    p_k = tuple(float(weight) for weight in asked.p_k)
    weights = config.select if isinstance(config.select, tuple) else p_k
    for name, found in (("p_k", p_k), ("select", weights)):
        if len(found) > num_classes:
            raise InputError(
                f"{name}: {len(found)} weights, for top-1 to top-{len(found)}, but only {num_classes} classes; "
                "give fewer",
                keyword=name,
            )
    m = num_classes if config.m is None else min(config.m, num_classes)
    temperature = config.inverse_temperature
    if temperature is None:
        temperature = default_inverse_temperature(config.loss, config.distribution, m)
    return dataclasses.replace(config, p_k=p_k, m=m, inverse_temperature=temperature)


def resolve(config: TrainConfig, num_classes: int, features: Tensor) -> TrainConfig:
    """The settings with every default filled in.

    Args:
        config: The settings.
        num_classes: C.
        features: ``(N, D)`` of the training split.

    Raises:
        InputError: See `resolve_loss`.
    """
    config = resolve_loss(config, num_classes)
    rows = len(features)
    batch_size = min(config.batch_size, rows)
    # An epoch of LBFGS is 20 iterations over all rows.
    steps = STEPS if config.optimizer == "lbfgs" else -(-rows // batch_size)
    return dataclasses.replace(
        config,
        learning_rate=_learning_rate(config, features),
        epochs=max(EPOCHS, -(-STEPS // steps)) if config.epochs is None else config.epochs,
        batch_size=batch_size,
        patience=max(PATIENCE, -(-PATIENCE_STEPS // steps)) if config.patience is None else config.patience,
        device=str(pick_device(config.device)),
    )


def _check_candidates(config: ObjectiveSettings) -> None:
    """Name m, where somebody chose it, and not the weights of ranks beyond it, which may be the default."""
    m, ranks = config.m, len(config.p_k or ())
    if config.loss != "softmax" and isinstance(m, int) and m != TrainConfig.m and 0 < m < ranks:
        raise InputError(
            f"--m: {m} found, but p_k has weights for top-1 to top-{ranks}; expected m of at least {ranks}, "
            "or fewer weights"
        )


def _learning_rate(config: TrainConfig, features: Tensor) -> float:
    """The one that was given, or the default for features of this size."""
    adam = config.optimizer in ("adam", "adamw")
    if config.learning_rate is not None or config.head != "linear" or not adam:
        return config.step_size
    return float(f"{config.step_size * rate_factor(column_size(features)):.3g}")


def selection_weights(config: ObjectiveSettings, num_classes: int) -> tuple[float, ...]:
    """Weights of top-1, top-2, ... in the score that chooses the epoch.

    Raises:
        InputError: ``top5`` with fewer than five classes.
    """
    if config.select == "top5" and num_classes < 5:
        raise InputError(f"--select: top5 found, but only {num_classes} classes; choose top1")
    if isinstance(config.select, tuple):
        return config.select
    return {"p_k": config.p_k or (1.0,), "top1": (1.0,), "top5": (0.0, 0.0, 0.0, 0.0, 1.0)}[config.select]
