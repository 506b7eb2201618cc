"""The settings of a fine-tuning with every default filled in."""

from dataclasses import replace

from ...core.environment import pick_device
from ...core.errors import InputError
from ..resolved_settings import resolve_loss
from .settings import (
    ALL,
    EPOCHS,
    EPOCHS_FROM_SCRATCH,
    FROZEN,
    HEAD_FACTOR,
    NONE,
    RATE,
    RATE_FROM_SCRATCH,
    TRAINED,
    FinetuneConfig,
)


def resolve(config: FinetuneConfig, num_classes: int, images: int, *, from_scratch: bool) -> FinetuneConfig:
    """The settings with every default filled in.

    Args:
        config: The settings.
        num_classes: C.
        images: How many there are to train on.
        from_scratch: Whether the backbone starts from random weights.

    Raises:
        InputError: Settings that the loss does not take, or that contradict each other.
    """
    config = resolve_loss(config, num_classes)
    if from_scratch and config.unfreeze != ALL:
        raise InputError(f"--unfreeze: {config.unfreeze} found beside `from_scratch`; random weights must learn: all")
    if config.unfreeze == NONE and config.batch_norm == TRAINED:
        raise InputError("--batch-norm: trained found, but nothing of the backbone learns (`unfreeze` none)")
    rate = config.learning_rate or (RATE_FROM_SCRATCH if from_scratch else RATE)
    fresh = config.start == "random" and not from_scratch
    default_epochs = EPOCHS_FROM_SCRATCH if from_scratch else EPOCHS
    return replace(
        config,
        batch_norm=config.batch_norm or (TRAINED if from_scratch else FROZEN),
        learning_rate=rate,
        head_learning_rate=config.head_learning_rate or rate * (HEAD_FACTOR if fresh else 1.0),
        epochs=config.epochs or max(default_epochs, -int(-config.warmup // 1)),
        batch_size=min(config.batch_size, images),
        device=str(pick_device(config.device)),
    )
