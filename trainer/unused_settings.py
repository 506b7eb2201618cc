"""Settings that a head does not read: told to whoever asks for one, and not multiplied out by a grid."""

import dataclasses
from collections.abc import Iterable

from ..core.errors import InputError
from .loss_defaults import METHOD_DEFAULTS, METHODS, options_read
from .objective_settings import ObjectiveSettings
from .settings_file import GivenSettings
from .train_config import LOSS_SETTINGS, TrainConfig

_DEFAULTS: GivenSettings = {field.name: field.default for field in dataclasses.fields(TrainConfig)}
# What belongs to the formula of the loss; smoothing of labels belongs to every loss.
_FORMULA = ("p_k", *(name for name in LOSS_SETTINGS if name != "label_smoothing"))
_STEPS = ("momentum", "warmup", "schedule", "dropout", "noise", "balanced", "averaging", "batch_size")


def unused(config: TrainConfig) -> dict[str, str]:
    """The settings that cannot change the head that ``config`` trains, each with the reason in words."""
    return _unused_by_loss(config) | _unused_by_head(config) | _unused_by_optimizer(config)


def without_unused(config: TrainConfig) -> TrainConfig:
    """The same head, what it does not read set to its default."""
    return dataclasses.replace(config, **{name: _DEFAULTS[name] for name in unused(config)})


def read_by_loss(settings: GivenSettings) -> GivenSettings:
    """Those of the settings, ``loss`` among them, that the loss reads or that are no part of its formula."""
    return {key: value for key, value in settings.items() if key not in set(_FORMULA) - options_read(settings["loss"])}


def unused_settings(config: ObjectiveSettings, asked: Iterable[str]) -> list[str]:
    """What is asked for and not read, a sentence each; a default is no wish, and the loss itself judges its ``p_k``.

    Args:
        config: The settings.
        asked: The names of those that somebody chose.
    """
    reasons = unused(config) if isinstance(config, TrainConfig) else _unused_by_loss(config)
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    return [
        f"{name}: {getattr(config, name)} found, but {reasons[name]}; leave it out"
        for name, default in defaults.items()
        if name in reasons and name in set(asked) - {"p_k"} and getattr(config, name) != default
    ]


def refuse_unused(config: ObjectiveSettings, *given: Iterable[str]) -> None:
    """Refuse settings that somebody chose and that change nothing; of a whole network those of the loss are judged.

    Args:
        config: The settings.
        given: The names that a file spells out, and those given by name; where they are all that there are, as in the
            ``config.yaml`` of a run, nobody chose them.

    Raises:
        InputError: One of them is not read.
    """
    # Files of older runs knew fewer settings of losses.
    complete = {field.name for field in dataclasses.fields(config)} - set(LOSS_SETTINGS)
    chosen = [names for names in map(set, given) if not names >= complete]
    for message in unused_settings(config, set().union(*chosen)):
        raise InputError(message, keyword=message.partition(":")[0])


def _unused_by_loss(config: ObjectiveSettings) -> dict[str, str]:
    read = options_read(config.loss)
    if not read:
        return dict.fromkeys(_FORMULA, f"--loss {config.loss}, plain cross-entropy, does not read it")
    found = {name: _owners(name) for name in _FORMULA if name not in read}
    if config.top1_mode == "sort" and "softmax_over" in read:
        found["softmax_over"] = "--top1-mode sort does not read it"
    only_top1 = config.p_k is not None and not any(config.p_k[1:])
    if only_top1 and config.top1_mode != "sort" and "top1_mode" in read:
        own = ("inverse_temperature", *(name for name in _FORMULA if _is_own(name)))
        return found | dict.fromkeys(own, "a --p-k of top-1 alone relaxes nothing")
    if config.distribution != "logistic_phi" and "art_lambda" in read:
        found["art_lambda"] = "it belongs to --distribution logistic_phi"
    return found


def _is_own(name: str) -> bool:
    """Whether an option belongs to single methods, not to all of a kind."""
    return any(name in method.reads for method in METHOD_DEFAULTS.values())


def _owners(name: str) -> str:
    return f"it belongs to --loss {', '.join(method for method in METHODS if name in options_read(method))}"


def _unused_by_head(config: TrainConfig) -> dict[str, str]:
    owners = {"norm": "norm_linear", "hidden": "mlp"}
    return {name: f"it belongs to --head {head}" for name, head in owners.items() if config.head != head}


def _unused_by_optimizer(config: TrainConfig) -> dict[str, str]:
    if config.optimizer == "lbfgs":
        return dict.fromkeys(_STEPS, "--optimizer lbfgs, which goes over the full batch, does not read it")
    return {} if config.optimizer == "sgd" else {"momentum": "it belongs to --optimizer sgd"}
