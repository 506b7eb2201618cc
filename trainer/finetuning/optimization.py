"""The optimiser, its groups of parameters and the course of its step size, all by timm."""

from typing import Any

import torch
from timm import optim as timm_optim
from timm.scheduler.cosine_lr import CosineLRScheduler
from timm.scheduler.step_lr import StepLRScheduler

from .network import Network
from .settings import FinetuneConfig

_timm: Any = timm_optim  # whose names are public, but not to a type checker


def parameter_groups(network: Network, config: FinetuneConfig) -> list[dict[str, Any]]:
    """What learns, with its share of the step size (``lr_scale``) and its weight decay.

    By timm: biases, norms and what a network names are not decayed; the step size falls from layer to layer as in BEiT
    (Bao et al., 2022). The head is a group of its own.
    """
    asked: Any = getattr(network.backbone, "no_weight_decay", list)
    decay, kept = config.weight_decay, list(asked())
    if config.layer_decay < 1:
        groups = _timm.param_groups_layer_decay(
            network.backbone, decay, no_weight_decay_list=kept, layer_decay=config.layer_decay
        )
    else:
        groups = _timm.param_groups_weight_decay(network.backbone, decay, no_weight_decay_list=kept)
    factor = config.head_learning_rate / config.learning_rate
    head = _timm.param_groups_weight_decay(network.head, config.weight_decay)
    return [*groups, *({**group, "lr_scale": factor} for group in head)]


class Optimization:
    """The optimiser with its step size.

    Args:
        network: What learns.
        config: The settings.
        steps: In an epoch.

    Attributes:
        optimizer: timm's, or torch's by timm's name.
    """

    def __init__(self, network: Network, config: FinetuneConfig, steps: int) -> None:
        self.optimizer: torch.optim.Optimizer = _timm.create_optimizer_v2(
            parameter_groups(network, config),
            opt=config.optimizer,
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            momentum=config.momentum,
        )
        total, rising = config.epochs * steps, round(config.warmup * steps)
        shared: dict[str, Any] = {"warmup_t": rising, "warmup_prefix": True, "t_in_epochs": False}
        shared |= {"warmup_lr_init": config.learning_rate / (rising + 1)}
        if config.schedule == "cosine":
            self._schedule: Any = CosineLRScheduler(self.optimizer, t_initial=max(1, total - rising), **shared)
        else:
            self._schedule = StepLRScheduler(self.optimizer, decay_t=total + 1, decay_rate=1.0, **shared)

    def step(self, number: int) -> None:
        """Take step ``number`` of the run (from 0), and forget the gradients."""
        self._schedule.step_update(number)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    @property
    def rate(self) -> float:
        """The largest step size that was used last, of the head and the backbone."""
        return max(float(group["lr"]) for group in self.optimizer.param_groups)
