"""The settings of a fine-tuning: every default in one place."""

import re
from dataclasses import dataclass
from typing import Any

from ...core.errors import InputError, near
from ...core.printable import shown
from ...core.settings import Bound, documented, setting
from ..objective_settings import ABOVE_0, AT_LEAST_0, SEED, SHARE, ObjectiveSettings, at_most

AUGMENTATIONS = ("none", "crop-flip", "randaugment", "trivial", "cifar")
ALL, NORMS, NONE = "all", "norms", "none"
LAST = re.compile(r"last:([1-9]\d*)")
EPOCHS, EPOCHS_FROM_SCRATCH = 10, 100
RATE, RATE_FROM_SCRATCH, HEAD_FACTOR = 1e-4, 1e-3, 10.0
FROZEN, TRAINED = "frozen", "trained"
_CHANCE = (Bound((int, float), lambda value: 0 <= value <= 1, "0 to 1"),)
_YES_OR_NO = (Bound(bool, lambda value: True, "true or false"),)
# None until `resolve`, which knows what the network starts from.
_FILLED_IN_BY_RESOLVE: Any = None


@documented("Attributes")
@dataclass(frozen=True)
class FinetuneConfig(ObjectiveSettings):
    """What a network is trained with.

    Here every setting is defined: the options of ``headsmith finetune`` and the keys of a settings file are these
    fields. Numbers and arrays of NumPy or torch become Python's own, lists become tuples.
    """

    start: str = setting(
        "random",
        "The head before its first step: random, backbone (the pretrained network's own last layer, its classes found "
        "by name), backbone-in-order (output i is class i); or a run folder, whose head and backbone they are.",
    )
    unfreeze: str = setting(
        ALL,
        "What learns beside the head: all, last:N (the last N blocks), norms, or none.",
        metavar="all|last:N|norms|none",
        parser=str,
    )
    batch_norm: str = setting(
        _FILLED_IN_BY_RESOLVE,
        "Whether batch normalisation keeps its statistics (frozen) or takes those of each batch (trained); by default "
        "frozen, and trained from scratch.",
        values=(FROZEN, TRAINED),
        left_out="frozen; trained from scratch",
    )
    augmentation: str = setting(
        "crop-flip",
        "Of the training images: none; crop-flip (a crop of 35 to 100 % of the area, mirrored or not); randaugment and "
        "trivial (the same, then RandAugment or TrivialAugment); cifar (4 pixels more on each side, a crop, mirrored "
        "or not).",
        values=AUGMENTATIONS,
    )
    erasing: float = setting(0.0, "How often a rectangle of a training image is erased, 0 to 1.", bounds=_CHANCE)
    mixup: float = setting(0.0, "Alpha of mixup, which mixes images and their labels; 0 is off.", bounds=AT_LEAST_0)
    cutmix: float = setting(
        0.0, "Alpha of CutMix; 0 is off. With mixup too, each batch is mixed by one of them.", bounds=AT_LEAST_0
    )
    optimizer: str = setting("adamw", "One of timm's: adamw, adam, sgd (with Nesterov's momentum), lamb, lion, ...")
    learning_rate: float = setting(
        _FILLED_IN_BY_RESOLVE,
        "The optimiser's step size; by default 1e-4, and 1e-3 from scratch.",
        left_out="1e-4; 1e-3 from scratch",
        bounds=ABOVE_0,
    )
    head_learning_rate: float = setting(
        _FILLED_IN_BY_RESOLVE,
        "The same of the head; by default 10 times as much where a head starts at random on a pretrained backbone.",
        left_out="learning-rate; 10 times that for a random head",
        bounds=ABOVE_0,
    )
    layer_decay: float = setting(
        1.0,
        "What the step size is multiplied by from layer to layer, down from the head; 1 is off.",
        bounds=(Bound((int, float), lambda value: 0 < value <= 1, "above 0 and at most 1"),),
    )
    weight_decay: float = setting(0.01, "Of weights, not of biases and norms.", bounds=AT_LEAST_0)
    momentum: float = setting(0.9, "Of the optimisers that have it.", bounds=SHARE)
    warmup: float = setting(0.0, "Epochs over which the step size rises linearly from 0.", bounds=AT_LEAST_0)
    schedule: str = setting(
        "cosine",
        "Of the step size; cosine goes down to 0 at the last epoch.",
        values=("cosine", "constant"),
    )
    averaging: float = setting(
        0.0,
        "Decay a step of an exponential moving average of the weights, which is scored and kept; 0 is off.",
        bounds=SHARE,
    )
    epochs: int = setting(
        _FILLED_IN_BY_RESOLVE,
        "Passes over the training images, at most; by default 10, and 100 from scratch.",
        left_out="10; 100 from scratch",
        bounds=at_most(1_000_000),
    )
    batch_size: int = setting(64, "Images a step; more than there are is all of them.", bounds=at_most(2**31 - 1))
    patience: int = setting(
        10, "Stop after this many epochs without a better validation score.", bounds=at_most(2**31 - 1)
    )
    amp: bool = setting(
        True, "Autocast to bfloat16 on CUDA; a CPU computes in float32.", left_out="yes", bounds=_YES_OR_NO
    )
    seed: int = setting(0, "Fixes the order of the images, and what is drawn.", bounds=SEED)
    device: str = setting("auto", "auto, cpu or cuda.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unfreeze not in (ALL, NORMS, NONE) and not LAST.fullmatch(self.unfreeze):
            known = (ALL, "last:N", NORMS, NONE)
            raise InputError(
                f"--unfreeze: {shown(self.unfreeze)} found, expected one of {', '.join(known)}"
                f"{near(self.unfreeze, known)}"
            )
        _check_optimizer(self.optimizer)
        if self.epochs is not None and self.warmup > self.epochs:
            raise InputError(f"--warmup: {self.warmup} epochs found, expected at most `epochs` ({self.epochs})")


def _check_optimizer(name: str) -> None:
    from timm import optim

    timm_optim: Any = optim  # whose names are public, but not to a type checker
    known: list[str] = timm_optim.list_optimizers()
    if name not in known:
        raise InputError(
            f"--optimizer: {shown(name)} found, expected one of timm's, such as adamw, sgd or lamb{near(name, known)}"
        )
