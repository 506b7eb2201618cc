"""What the training of a head and that of a whole network share: the loss, what chooses the epoch, and their file."""

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
from ..core.settings import Bound, check_choices, setting
from .few_classes import PresetWeights
from .loss_defaults import METHODS
from .loss_options import LossSettings
from .settings_file import no_setting, read_settings

AUTO = "auto"
SELECTIONS = ("p_k", "top1", "top5")

NUMBER = (int, float)
AT_LEAST_0 = (Bound(NUMBER, lambda value: 0 <= value < math.inf, "0 or more"),)
ABOVE_0 = (Bound(NUMBER, lambda value: 0 < value < math.inf, "a number above 0"),)
SHARE = (Bound(NUMBER, lambda value: 0 <= value < 1, "0 or more and below 1"),)


SEED = (Bound(int, lambda value: 0 <= value < 2**63, f"0 to {2**63 - 1}"),)


def at_most(most: int) -> tuple[Bound, Bound]:
    """Far beyond what anybody trains, and below what cannot be counted or set aside."""
    return Bound(int, lambda value: value > 0, "a whole number above 0"), Bound(
        int, lambda value: value <= most, f"at most {most:,}"
    )


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
        values=METHODS,
        command_line=(AUTO,),
    )
    p_k: tuple[float, ...] | None = setting(
        None,
        "Weights of top-1, top-2, ...: .5,0,0,0,.5. By default half top-1 and half top-5 (of fewer than six classes, "
        "the last rank that can be wrong), and top-1 for softmax.",
        left_out="the loss's",
        parser=weights,
        metavar="W,W,...",
    )


@dataclass(frozen=True)
class ObjectiveSettings(LossSettings, _Loss):
    """The loss, and what chooses the epoch.

    Numbers and arrays of NumPy or torch become Python's own, lists become tuples.
    """

    select: str | tuple[float, ...] = setting(
        "p_k",
        "What chooses the epoch on validation: p_k, top1, top5, or weights such as .5,0,0,0,.5.",
        parser=_word_or_weights,
        metavar="WORD|W,W,...",
    )

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
            if not isinstance(value, PresetWeights):
                object.__setattr__(self, name, tuple(own) if isinstance(own, list) else own)
            word = getattr(type(self), name)
            if isinstance(word, str) and not isinstance(own, str) and name != "select":
                raise InputError(f"{name}: {shown(own)} found, expected a word such as {word}", keyword=name)
        if self.loss == AUTO:
            raise InputError("--loss: auto found, which `train` alone takes; expected one loss", keyword="loss")
        check_choices(self)
        if self.p_k is not None:
            self._weights("p_k")
        if self.select not in SELECTIONS:
            given = self._weights("select", f"one of {', '.join(SELECTIONS)}, or ", SELECTIONS)
            if min(given, default=-1) < 0 or not sum(given) > 0:
                raise InputError(f"--select: {given} found, expected weights of 0 or more, one of them above 0")

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
