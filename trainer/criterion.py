"""From settings to the loss that they name."""

import re
from typing import Any

import torch
from torch import Tensor

from ..core.errors import InputError
from .losses import TopKCrossEntropy
from .objective_settings import ObjectiveSettings
from .train_config import LOSS_SETTINGS

# The settings that are the loss's own, by its keywords.
KEYWORDS = {"loss": "method", "p_k": "p_k"} | {name: name for name in LOSS_SETTINGS}


def criterion(
    config: ObjectiveSettings, *, inplace: bool = False, class_counts: Tensor | None = None
) -> TopKCrossEntropy:
    """The loss of a configuration, row by row.

    Args:
        config: The configuration.
        inplace: Let its gradient overwrite the logits.
        class_counts: ``(C,)`` rows of training of each class, for a loss that reads them; None is equally many.

    Raises:
        InputError: Settings that the loss does not take.
    """
    keywords: dict[str, Any] = {keyword: getattr(config, name) for name, keyword in KEYWORDS.items()}
    try:
        loss = TopKCrossEntropy(**keywords, reduction="none", inplace=inplace)
    except (ValueError, TypeError) as error:
        message = re.sub(r"^method:", "loss:", str(error))  # it begins with the argument
        raise InputError(message, keyword=re.split(r"\W", message, maxsplit=1)[0]) from None
    loss.class_counts = class_counts if loss.options.counts_classes else None
    return loss


def chance_loss(config: ObjectiveSettings, num_classes: int) -> float:
    """The loss of equal scores for all classes, as a head of zeros gives them."""
    return float(criterion(config)(torch.zeros(1, num_classes), torch.zeros(1, dtype=torch.int64)))
