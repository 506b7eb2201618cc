"""The settings of a training run: every default in one place, every value spelt out in the run folder."""

from dataclasses import dataclass, fields
from typing import Any

from ..core.errors import InputError
from ..core.settings import Bound, documented, setting
from .loss_defaults import METHOD_DEFAULTS
from .loss_options import LossSettings
from .objective_settings import ABOVE_0, AT_LEAST_0, SEED, SHARE, ObjectiveSettings, at_most

# What a loss's rate (`loss_defaults.py`, Adam's) is multiplied by (SGD on the glyph set: 0.1 to 0.3 were
# best); LBFGS searches from 1.
OPTIMIZERS = {"adam": 1.0, "adamw": 1.0, "sgd": 50.0, "lbfgs": 0.0}
# Epochs and patience where they are not given: so many, and in a small split as many as make so many steps; found on
# small sets of several origins (docs/training.md).
EPOCHS, STEPS = 100, 3000
PATIENCE, PATIENCE_STEPS = 10, 300
# The settings in which heads of one bank may differ.
LOSS_SETTINGS = tuple(field.name for field in fields(LossSettings))
PER_HEAD = ("loss", "p_k", *LOSS_SETTINGS, "learning_rate", "weight_decay")


# None until `resolve`, which knows how many rows there are; typed for whoever trains, who has a number there.
_FILLED_IN_BY_RESOLVE: Any = None


@documented("Attributes")
@dataclass(frozen=True)
class TrainConfig(ObjectiveSettings):
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
    hidden: int = setting(2048, "Units in the hidden layer of mlp.", bounds=at_most(1_000_000))
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
        None, "The optimiser's step size.", left_out="the loss's, for features of this size", bounds=ABOVE_0
    )
    weight_decay: float = setting(
        0.0, "L2 penalty, or decay for adamw; biases too, as in torch.optim.", bounds=AT_LEAST_0
    )
    momentum: float = setting(0.9, "Of sgd.", bounds=SHARE)
    warmup: float = setting(0.0, "Epochs over which the step size rises linearly from 0.", bounds=AT_LEAST_0)
    schedule: str = setting(
        "constant",
        "Of the step size; cosine goes down to 0 at the last epoch.",
        values=("constant", "cosine"),
    )
    dropout: float = setting(0.0, "Share of a feature's entries that are set to 0 in training.", bounds=SHARE)
    noise: float = setting(
        0.0,
        "Deviation of Gaussian noise added to features in training, in units of their root mean square.",
        bounds=AT_LEAST_0,
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
        bounds=SHARE,
    )
    epochs: int = setting(
        _FILLED_IN_BY_RESOLVE,
        "Passes over the training split, at most; by default 100, or as many as make 3,000 steps.",
        left_out=f"{EPOCHS}, or {STEPS:,} steps",
        bounds=at_most(1_000_000),
    )
    batch_size: int = setting(
        512, "Rows a step, over all processes; more than there are is all of them.", bounds=at_most(2**31 - 1)
    )
    patience: int = setting(
        _FILLED_IN_BY_RESOLVE,
        "Stop after this many epochs without a better validation score; by default 10, or as many as make 300 steps.",
        left_out=f"{PATIENCE}, or {PATIENCE_STEPS} steps",
        bounds=at_most(2**31 - 1),
    )
    seed: int = setting(
        0,
        "Fixes the order of the rows, and what is drawn.",
        bounds=SEED,
    )
    device: str = setting("auto", "auto, cpu or cuda.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epochs is not None and self.warmup > self.epochs:
            raise InputError(f"--warmup: {self.warmup} epochs found, expected at most `epochs` ({self.epochs})")

    @property
    def step_size(self) -> float:
        """The learning rate: the one that was given, else the loss's own, scaled for the optimiser."""
        if self.learning_rate is not None:
            return self.learning_rate
        return METHOD_DEFAULTS[self.loss].learning_rate * OPTIMIZERS[self.optimizer] or 1.0
