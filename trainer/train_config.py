"""The settings of a training run: every default in one place, every value spelt out in the run folder."""

import dataclasses
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import yaml

from ..core.arguments import typed
from ..core.builtin_types import is_number, to_builtin
from ..core.errors import InputError, near
from ..core.files import new_file
from ..core.printable import shown
from ..core.settings import Bound, check_choices, documented, setting
from .loss_defaults import METHOD_DEFAULTS, METHODS
from .loss_options import LossSettings
from .settings_file import no_setting, read_settings

# What a loss's rate (`loss_defaults.py`, Adam's) is multiplied by (SGD on the glyph set: 0.1 to 0.3 were
# best); LBFGS searches from 1.
OPTIMIZERS = {"adam": 1.0, "adamw": 1.0, "sgd": 50.0, "lbfgs": 0.0}
# Epochs and patience where they are not given: so many, and in a small split as many as make so many steps; found on
# small sets of several origins (docs/training.md).
EPOCHS, STEPS = 100, 3000
PATIENCE, PATIENCE_STEPS = 10, 300
AUTO = "auto"
SELECTIONS = ("p_k", "top1", "top5")
# The settings in which heads of one bank may differ.
LOSS_SETTINGS = tuple(field.name for field in fields(LossSettings))
PER_HEAD = ("loss", "p_k", *LOSS_SETTINGS, "learning_rate", "weight_decay")


# None until `resolve`, which knows how many rows there are; typed for whoever trains, who has a number there.
_FILLED_IN_BY_RESOLVE: Any = None


def _at_most(most: int) -> tuple[Bound, Bound]:
    """Far beyond what anybody trains, and below what cannot be counted or set aside."""
    return Bound(int, lambda value: value > 0, "a whole number above 0"), Bound(
        int, lambda value: value <= most, f"at most {most:,}"
    )


_NUMBER = (int, float)
_AT_LEAST_0 = (Bound(_NUMBER, lambda value: 0 <= value < math.inf, "0 or more"),)
_ABOVE_0 = (Bound(_NUMBER, lambda value: 0 < value < math.inf, "a number above 0"),)
_SHARE = (Bound(_NUMBER, lambda value: 0 <= value < 1, "0 or more and below 1"),)


def weights(text: str) -> tuple[float, ...]:
    """``.5,0,0,0,.5`` as numbers.

    Raises:
        InputError: It is none.
    """
    try:
        return tuple(float(weight) for weight in text.split(","))
    except ValueError:
        raise InputError(f"{text!r} found, expected numbers between commas such as .5,0,0,0,.5") from None


def _word_or_weights(text: str) -> str | tuple[float, ...]:
    return text if text[:1].isalpha() else weights(text)


@dataclass(frozen=True)
class _Loss:
    """What comes first in help and in files."""

    loss: str = setting(
        "softmax",
        "softmax is cross-entropy; the others optimise top-k accuracy. auto, of `train` alone, takes the best of a "
        "short sweep.",
        values=(*METHODS, AUTO),
    )
    p_k: tuple[float, ...] | None = setting(
        None,
        "Weights of top-1, top-2, ...: .5,0,0,0,.5. By default half top-1 and half top-5 (of fewer than six classes, "
        "the last rank that can be wrong), and top-1 for softmax.",
        left_out="the loss's",
        parser=weights,
        metavar="W,W,...",
    )


@documented("Attributes")
@dataclass(frozen=True)
class TrainConfig(LossSettings, _Loss):
    """What a head is trained with.

    Here every setting is defined: the options of ``headsmith train``, the keys of a settings file and the parameters of
    `HeadClassifier` are these fields. Numbers and arrays of NumPy or torch become Python's own, lists become tuples.
    """

    head: str = setting("linear", "The kind of head.", values=("linear", "norm_linear", "cosine", "mlp"))
    norm: str = setting(
        "standard",
        "What norm_linear does first: standard (mean and deviation of the training rows), layer, or unit (Euclidean "
        "length 1).",
    )
    hidden: int = setting(2048, "Units in the hidden layer of mlp.", bounds=_at_most(1_000_000))
    start: str = setting(
        "random",
        "random (weights up to a tenth of 1 / sqrt(D): from zeros all scores are equal, and a sorting network cannot "
        "tell the label from its rivals), zeros, backbone (the pretrained network's own last layer, its classes found "
        "by name), backbone-in-order (output i is class i), or a run folder or head file.",
    )
    optimizer: str = setting(
        "adam", "adamw decouples weight decay; lbfgs goes over the full batch.", values=tuple(OPTIMIZERS)
    )
    # Where none is given: the loss's (`METHOD_DEFAULTS` in loss_defaults.py), times the optimiser's (`OPTIMIZERS`),
    # times a factor for features of this size (feature_scale.py); put together in resolved_settings.py.
    learning_rate: float | None = setting(
        None, "The optimiser's step size.", left_out="the loss's, for features of this size", bounds=_ABOVE_0
    )
    weight_decay: float = setting(
        0.0, "L2 penalty, or decay for adamw; biases too, as in torch.optim.", bounds=_AT_LEAST_0
    )
    momentum: float = setting(0.9, "Of sgd.", bounds=_SHARE)
    warmup: float = setting(0.0, "Epochs over which the step size rises linearly from 0.", bounds=_AT_LEAST_0)
    schedule: str = setting(
        "constant",
        "Of the step size; cosine goes down to 0 at the last epoch.",
        values=("constant", "cosine"),
    )
    dropout: float = setting(0.0, "Share of a feature's entries that are set to 0 in training.", bounds=_SHARE)
    noise: float = setting(
        0.0,
        "Deviation of Gaussian noise added to features in training, in units of their root mean square.",
        bounds=_AT_LEAST_0,
    )
    balanced: bool = setting(
        False,
        "Draw the rows of every class equally often, with replacement.",
        left_out="no",
        bounds=(Bound(bool, lambda value: True, "true or false"),),
    )
    averaging: float = setting(
        0.0,
        "Decay a step of an exponential moving average of the weights, which is scored and kept; 0 is off.",
        bounds=_SHARE,
    )
    select: str | tuple[float, ...] = setting(
        "p_k",
        "What chooses the epoch on validation: p_k, top1, top5, or weights such as .5,0,0,0,.5.",
        parser=_word_or_weights,
        metavar="WORD|W,W,...",
    )
    epochs: int = setting(
        _FILLED_IN_BY_RESOLVE,
        "Passes over the training split, at most; by default 100, or as many as make 3,000 steps.",
        left_out=f"{EPOCHS}, or {STEPS:,} steps",
        bounds=_at_most(1_000_000),
    )
    batch_size: int = setting(
        512, "Rows a step, over all processes; more than there are is all of them.", bounds=_at_most(2**31 - 1)
    )
    patience: int = setting(
        _FILLED_IN_BY_RESOLVE,
        "Stop after this many epochs without a better validation score; by default 10, or as many as make 300 steps.",
        left_out=f"{PATIENCE}, or {PATIENCE_STEPS} steps",
        bounds=_at_most(2**31 - 1),
    )
    seed: int = setting(
        0,
        "Fixes the order of the rows, and what is drawn.",
        bounds=(Bound(int, lambda value: 0 <= value < 2**63, f"0 to {2**63 - 1}"),),
    )
    device: str = setting("auto", "auto, cpu or cuda.")

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        """Refuse an unknown setting with the names near it, where the generated ``__init__`` names none."""
        known = [field.name for field in fields(cls)]
        for name in settings:
            if name not in known:
                raise InputError(no_setting(name, known))
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            own = to_builtin(value)
            object.__setattr__(self, name, tuple(own) if isinstance(own, list) else own)
            word = getattr(type(self), name)
            if isinstance(word, str) and not isinstance(own, str) and name != "select":
                raise InputError(f"{name}: {shown(own)} found, expected a word such as {word}", keyword=name)
        check_choices(self)
        if self.loss == AUTO:
            raise InputError("--loss: auto found, which `train` alone takes; expected one loss", keyword="loss")
        if self.p_k is not None:
            self._weights("p_k")
        if self.select not in SELECTIONS:
            given = self._weights("select", f"one of {', '.join(SELECTIONS)}, or ", SELECTIONS)
            if min(given, default=-1) < 0 or not sum(given) > 0:
                raise InputError(f"--select: {given} found, expected weights of 0 or more, one of them above 0")
        if self.epochs is not None and self.warmup > self.epochs:
            raise InputError(f"--warmup: {self.warmup} epochs found, expected at most `epochs` ({self.epochs})")

    def _weights(self, name: str, or_else: str = "", words: tuple[str, ...] = ()) -> tuple[float, ...]:
        value: Any = getattr(self, name)
        if not isinstance(value, tuple) or not all(map(is_number, value)):
            alone = value[0] if isinstance(value, tuple) and len(value) == 1 else value
            raise InputError(
                f"{name}: {shown(value)} found, expected {or_else}weights of top-1, top-2, ... such as "
                f"(.5, 0, 0, 0, .5){near(str(alone), words)}",
                keyword=name,
            )
        return value

    @property
    def step_size(self) -> float:
        """The learning rate: the one that was given, else the loss's own, scaled for the optimiser."""
        if self.learning_rate is not None:
            return self.learning_rate
        return METHOD_DEFAULTS[self.loss].learning_rate * OPTIMIZERS[self.optimizer] or 1.0

    def save(self, path: str | Path) -> None:
        """Write as YAML, atomically."""
        values = {name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(self).items()}
        with new_file(path) as temporary:
            temporary.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")

    @classmethod
    @typed
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote, or a file with some of the settings.

        Raises:
            InputError: The file is missing, is not YAML, or has an unknown key.
        """
        values = read_settings(path, cls)
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
