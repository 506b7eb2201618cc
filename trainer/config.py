"""The settings of a training run: every default in one place, every value spelt out in the run folder."""

import dataclasses
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from types import NoneType
from typing import Any, Self, TypedDict, cast

import yaml

from ..core.arguments import typed
from ..core.errors import InputError, near
from ..core.files import new_file
from ..core.printable import short, shown
from ..core.yaml_file import read_yaml
from ..models.heads import HEADS
from .losses.method_defaults import DISTRIBUTIONS, METHOD_DEFAULTS, METHODS
from .losses.options import SOFTMAX_OVER, TOP1_MODES
from .plain import is_number, plain

# What a loss's rate (`losses/method_defaults.py`, Adam's) is multiplied by (SGD on the glyph set: 0.1 to 0.3 were
# best); LBFGS searches from 1.
OPTIMIZERS = {"adam": 1.0, "adamw": 1.0, "sgd": 50.0, "lbfgs": 0.0}
# Epochs and patience where they are not given: so many, and in a small split as many as make so many steps; found on
# small sets of several origins (docs/training.md).
EPOCHS, STEPS = 100, 3000
PATIENCE, PATIENCE_STEPS = 10, 300
# Far beyond what anybody trains, and below what cannot be counted or set aside.
_MOST = {"epochs": 1_000_000, "batch_size": 2**31 - 1, "patience": 2**31 - 1, "hidden": 1_000_000}
SCHEDULES = ("constant", "cosine")
SELECTIONS = ("p_k", "top1", "top5")
_CHOICES: dict[str, Collection[str]] = {
    "loss": METHODS,
    "distribution": DISTRIBUTIONS,
    "top1_mode": TOP1_MODES,
    "softmax_over": SOFTMAX_OVER,
    "head": HEADS,
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
}
# What stands in a sweep file beside settings.
SWEEP_KEYS = ("preset", "grids", "final_seeds", "name")
# The settings in which heads of one bank may differ.
PER_HEAD = (
    "loss",
    "p_k",
    "m",
    "inverse_temperature",
    "distribution",
    "art_lambda",
    "top1_mode",
    "softmax_over",
    "label_smoothing",
    "learning_rate",
    "weight_decay",
)


class Settings(TypedDict, total=False):
    """The fields of `TrainConfig`, any of them."""

    loss: str
    p_k: tuple[float, ...] | None
    m: int | None
    inverse_temperature: float | None
    distribution: str
    art_lambda: float
    top1_mode: str
    softmax_over: str
    label_smoothing: float
    head: str
    norm: str
    hidden: int
    start: str
    optimizer: str
    learning_rate: float | None
    weight_decay: float
    momentum: float
    warmup: float
    schedule: str
    dropout: float
    noise: float
    balanced: bool
    averaging: float
    select: str | tuple[float, ...]
    epochs: int
    batch_size: int
    patience: int
    seed: int
    device: str


# None until `resolve`, which knows how many rows there are; typed for whoever trains, who has a number there.
_FILLED_IN_BY_RESOLVE: Any = None


@dataclass(frozen=True)
class TrainConfig:
    """What a head is trained with.

    Numbers and arrays of NumPy or torch become Python's own, and lists become tuples.

    Attributes:
        loss: ``softmax`` (plain cross-entropy), or the relaxation of a top-k cross-entropy: one of
            `headsmith.trainer.losses.METHODS`.
        p_k: The weights of top-1, top-2, ...; ``None`` is half top-1 and half top-5 (of fewer than six classes, the
            last rank that can be wrong), and top-1 for ``softmax``.
        m: How many of the highest scores enter the relaxation; ``None`` keeps all classes.
        inverse_temperature: Sharpness of the relaxation; ``None`` takes the loss's default.
        distribution: Of a sorting network's comparators; see `TopKCrossEntropy`, as for the four that follow.
        art_lambda: The lambda of the distribution ``logistic_phi``.
        top1_mode: How top-1 enters: ``smce`` (a cross-entropy of its own, which still pulls where top-k is reached
            already, as with few classes), ``sm`` or ``sort``.
        softmax_over: What its softmax runs over: ``candidates`` or ``classes``.
        label_smoothing: Share of the cross-entropy with uniform targets.
        head: ``linear``, ``norm_linear``, ``cosine`` or ``mlp``.
        norm: What ``norm_linear`` does first: ``standard`` (mean and deviation of the training rows), ``layer``
            or ``unit`` (Euclidean length 1).
        hidden: Units in the hidden layer of ``mlp``.
        start: ``random`` (weights up to a tenth of 1 / sqrt(D): from zeros all scores are equal, and a sorting network
            cannot tell the label from its rivals), ``zeros``, ``backbone`` (the pretrained network's own last layer,
            its classes found by name), ``backbone-in-order`` (output i is class i), or a run folder or head file.
        optimizer: ``adam``, ``adamw`` (decoupled weight decay), ``sgd``, or ``lbfgs`` on the full batch.
        learning_rate: Its step size; ``None`` takes the loss's default (`losses/method_defaults.py`), for Adam and
            linear heads by the size of the features.
        weight_decay: L2 penalty, or decay for ``adamw``; biases too, as in `torch.optim`.
        momentum: Of ``sgd``.
        warmup: Epochs over which the step size rises linearly from 0.
        schedule: Of the step size after that: ``constant``, or ``cosine`` down to 0 at the last epoch.
        dropout: Share of a feature's entries that are set to 0 in training.
        noise: Deviation of Gaussian noise added to features in training, in units of the features' root mean square.
        balanced: Draw the rows of every class equally often, with replacement.
        averaging: Decay a step of an exponential moving average of the weights, which is scored and kept; 0 is off.
        select: What chooses the epoch on the validation split: accuracy weighted by ``p_k``, ``top1``, ``top5``, or
            weights of top-1, top-2, ...
        epochs: Passes over the training split, at the most; left out, 100, or as many as make 3,000 steps.
        batch_size: Rows a step, over all processes; more than there are is all of them.
        patience: Stop after this many epochs without a better validation accuracy; left out, 10, or as many as
            make 300 steps.
        seed: Fixes the order of the rows, and what is drawn.
        device: ``auto``, ``cpu`` or ``cuda``.
    """

    loss: str = "softmax"
    p_k: tuple[float, ...] | None = None
    m: int | None = 16
    inverse_temperature: float | None = None
    distribution: str = "logistic_phi"
    art_lambda: float = 0.5
    top1_mode: str = "smce"
    softmax_over: str = "candidates"
    label_smoothing: float = 0.0
    head: str = "linear"
    norm: str = "standard"
    hidden: int = 2048
    start: str = "random"
    optimizer: str = "adam"
    learning_rate: float | None = None
    weight_decay: float = 0.0
    momentum: float = 0.9
    warmup: float = 0.0
    schedule: str = "constant"
    dropout: float = 0.0
    noise: float = 0.0
    balanced: bool = False
    averaging: float = 0.0
    select: str | tuple[float, ...] = "p_k"
    epochs: int = _FILLED_IN_BY_RESOLVE
    batch_size: int = 512
    patience: int = _FILLED_IN_BY_RESOLVE
    seed: int = 0
    device: str = "auto"

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        """Refuse an unknown setting with the names near it, where the generated ``__init__`` names none."""
        known = [field.name for field in fields(cls)]
        for name in settings:
            if name not in known:
                raise InputError(no_setting(name, known))
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            own = plain(value)
            object.__setattr__(self, name, tuple(own) if isinstance(own, list) else own)
            if isinstance(getattr(type(self), name), str) and not isinstance(own, str) and name != "select":
                raise InputError(f"{name}: {shown(own)} found, expected a word such as {getattr(type(self), name)}")
        for name, most in _MOST.items():
            if getattr(self, name) is not None or name not in ("epochs", "patience"):
                self._check(name, int, lambda value: value > 0, "a whole number above 0")
                self._check(name, int, lambda value, most=most: value <= most, f"at most {most:,}")
        for name in ("weight_decay", "noise", "warmup"):
            self._check(name, (int, float), lambda value: 0 <= value < float("inf"), "0 or more")
        for name in ("dropout", "averaging", "momentum", "label_smoothing"):
            self._check(name, (int, float), lambda value: 0 <= value < 1, "0 or more and below 1")
        for name in ("learning_rate", "inverse_temperature"):
            if getattr(self, name) is not None:
                self._check(name, (int, float), lambda value: 0 < value < float("inf"), "a number above 0")
        self._check("seed", int, lambda value: 0 <= value < 2**63, f"0 to {2**63 - 1}")
        self._check("balanced", bool, lambda value: True, "true or false")
        for name, known in _CHOICES.items():
            self._check_known(name, known)
        if self.p_k is not None:
            self._weights("p_k")
        if self.select not in SELECTIONS:
            weights = self._weights("select", f"one of {', '.join(SELECTIONS)}, or ", SELECTIONS)
            if min(weights, default=-1) < 0 or not sum(weights) > 0:
                raise InputError(f"select: {weights} found, expected weights of 0 or more, one of them above 0")
        if self.epochs is not None and self.warmup > self.epochs:
            raise InputError(f"warmup: {self.warmup} epochs found, expected at most `epochs` ({self.epochs})")

    def _check(self, name: str, kind: Any, fits: Any, expected: str) -> None:
        value = getattr(self, name)
        right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not right or not fits(value):
            raise InputError(f"{name}: {shown(value)} found, expected {expected}")

    def _check_known(self, name: str, known: Any) -> None:
        value = getattr(self, name)
        if not isinstance(value, str) or value not in known:
            raise InputError(
                f"{name}: {shown(value)} found, expected one of {', '.join(known)}{near(str(value), known)}"
            )

    def _weights(self, name: str, or_else: str = "", words: tuple[str, ...] = ()) -> tuple[float, ...]:
        value: Any = getattr(self, name)
        if not isinstance(value, tuple) or not all(map(is_number, value)):
            raise InputError(
                f"{name}: {shown(value)} found, expected {or_else}weights of top-1, top-2, ... such as "
                f"(.5, 0, 0, 0, .5){near(str(value), words)}"
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
        values = read_settings(path)
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def read_settings(path: str | Path) -> Settings:
    """The settings that a YAML file spells out.

    Raises:
        InputError: The file is missing, is not YAML, or has an unknown key.
    """
    values: Any = read_yaml(path)
    known = [field.name for field in fields(TrainConfig)]
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
    return cast(Settings, {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})


@contextmanager
def read_from(path: str | Path | None, names: Collection[str]) -> Iterator[None]:
    """Let an error about a setting, whose name it begins with, begin with the file that spells it out.

    Args:
        path: The file.
        names: The settings that it decides.
    """
    try:
        yield
    except InputError as error:
        if re.split(r"\W", str(error), maxsplit=1)[0] in names:
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
