"""Settings that a head does not read, so that a grid does not train the same head twice."""

import dataclasses
from typing import Any

from ..config import TrainConfig
from ..losses.settings import NETWORKS

_DEFAULTS: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(TrainConfig)}
_RELAXATION = {"inverse_temperature", "distribution", "art_lambda"}


def unread(config: TrainConfig) -> set[str]:
    """Names of the settings that cannot change the head that ``config`` trains."""
    return _unread_by_loss(config) | _unread_by_head(config) | _unread_by_optimizer(config)


def without_unread(config: TrainConfig) -> TrainConfig:
    """The same head, what it does not read set to its default."""
    return dataclasses.replace(config, **{name: _DEFAULTS[name] for name in unread(config)})


def _unread_by_loss(config: TrainConfig) -> set[str]:
    if config.loss == "softmax":
        return {"p_k", "m", "top1_mode", "softmax_over", *_RELAXATION}
    names = set() if config.top1_mode != "sort" else {"softmax_over"}
    only_top1 = config.p_k is not None and not any(config.p_k[1:])
    if only_top1 and config.top1_mode != "sort":
        return names | _RELAXATION
    if config.loss not in NETWORKS:
        return names | {"distribution", "art_lambda"}
    return names if config.distribution == "logistic_phi" else names | {"art_lambda"}


def _unread_by_head(config: TrainConfig) -> set[str]:
    return {name for name, head in (("norm", "norm_linear"), ("hidden", "mlp")) if config.head != head}


def _unread_by_optimizer(config: TrainConfig) -> set[str]:
    return set() if config.optimizer == "sgd" else {"momentum"}
