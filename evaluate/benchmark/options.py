"""What a benchmark is asked for: every option with its default, its help and its choices."""

import math
import re
from dataclasses import dataclass
from typing import Any

from ...core.count_limits import check_at_once, check_threads
from ...core.errors import InputError
from ...core.printable import shown
from ...core.settings import Bound, check_choices, documented, setting
from ...export.options import PRECISIONS
from ...models.execution_provider import ExecutionProvider, providers_of

ALL, TIED = "all", "tied"
LARGEST_IMAGE = 4096
_TIMES = {"ms": 1.0, "s": 1e3, "m": 6e4, "min": 6e4, "h": 3.6e6}
_SIZES = {"kb": 1e-3, "mb": 1.0, "gb": 1e3}
_QUANTITY = re.compile(r"\s*(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[a-zA-Z]*)\s*")


def _quantity(text: Any, units: dict[str, float], default: str, example: str) -> float:
    """A number with a unit, in the unit ``default``.

    Raises:
        InputError: It is none, or it is not above 0.
    """
    found = _QUANTITY.fullmatch(text if isinstance(text, str) else str(text))
    unit = found["unit"].lower() if found else ""
    if (
        found is None
        or isinstance(text, bool)
        or (unit or default) not in units
        or not 0 < float(found["number"]) < math.inf
    ):
        raise InputError(f"{shown(text)} found, expected a number above 0 with its unit such as {example}")
    return float(found["number"]) * units[unit or default] / units[default]


def milliseconds(text: Any) -> float:
    """``20ms`` or ``.02s`` in milliseconds, which a bare number is too."""
    return _quantity(text, _TIMES, "ms", "20ms")


def seconds(text: Any) -> float:
    """``2h``, ``90m`` or ``30s`` in seconds, which a bare number is too."""
    return _quantity(text, _TIMES, "s", "2h")


def megabytes(text: Any) -> float:
    """``20MB``, ``500kB`` or ``1GB`` in megabytes (10**6 bytes), which a bare number is too."""
    return _quantity(text, _SIZES, "mb", "20MB")


def _pixels(values: Any) -> bool:
    return all(isinstance(one, int) and not isinstance(one, bool) and 1 <= one <= LARGEST_IMAGE for one in values)


_WORDS = (Bound(tuple, lambda values: all(isinstance(one, str) and one.strip() for one in values), "a list of words"),)
_POSITIVE = (Bound(int, lambda value: value > 0, "a whole number above 0"),)


_PARSERS = (("latency", milliseconds), ("size", megabytes), ("memory", megabytes), ("budget", seconds))


@documented("Attributes")
@dataclass(frozen=True)
class BenchmarkOptions:
    """The options of one benchmark; lists become tuples.

    Raises:
        InputError: A value that means nothing.
    """

    image_size: tuple[int, ...] = setting(
        (),
        "Crop edges in pixels; each backbone is tried with each of them (ONNX files have their own).",
        left_out="the backbone's own",
        bounds=(Bound(tuple, _pixels, f"a list of 1 to {LARGEST_IMAGE} pixels"),),
    )
    sweep: tuple[str, ...] = setting(
        ("default",),
        "The grid of heads: quick, default, thorough, published settings by name, or a sweep file.",
        bounds=_WORDS,
    )
    precision: tuple[str, ...] = setting(
        ("fp32",), "What files compute in; a lower one has to pass its gate on validation.", values=PRECISIONS
    )
    provider: tuple[ExecutionProvider, ...] = setting(
        ("cpu",),
        "onnxruntime's execution providers, or YAML files with their options: the first measures the table, others add "
        "columns.",
    )
    also: tuple[str, ...] = setting(
        (), "Bundles and files of others as further rows, paired with the winner on the same images.", bounds=_WORDS
    )
    keep: str = setting(TIED, "Bundles that stay: those tied with the winner, or all.", values=(TIED, ALL))
    latency: float | None = setting(
        None,
        "The winner is the best that answers one image in at most so long (median).",
        parser=milliseconds,
        metavar="TIME",
    )
    size: float | None = setting(
        None, "The winner is the best whose file is at most so large.", parser=megabytes, metavar="SIZE"
    )
    memory: float | None = setting(
        None, "The winner is the best that takes at most so much memory.", parser=megabytes, metavar="SIZE"
    )
    budget: float | None = setting(
        None,
        "So long it may take: backbones go by promise for their cost, and those that do not fit are left out.",
        parser=seconds,
        metavar="TIME",
    )
    max_drop: float = setting(
        1.0,
        "Points of top-1 and of top-5 that a lower precision may lose on validation.",
        bounds=(Bound((int, float), lambda value: value >= 0, "0 or more points"),),
    )
    jobs: int | None = setting(
        None,
        "Processes that share the work; at most 64, or the machine's cores.",
        left_out="two where there are as many CPUs and backbones, one for every four CPUs at most",
        bounds=_POSITIVE,
    )
    batch_size: int = setting(64, "Images a forward pass; halved where memory does not do.", bounds=_POSITIVE)
    threads: int | None = setting(
        None, "onnxruntime's threads; at most 64, or the machine's cores.", left_out="the cores this process may use"
    )
    speed: bool = setting(False, "Time longer, and at batch sizes 1 to 256.")
    image_column: str | None = setting(None, "Image column of a `datasets` source.")
    label_column: str | None = setting(None, "Label column of a `datasets` source.")
    device: str = setting("auto", "Of extraction and sweeps: auto, cpu or cuda.")

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
        for flag, parse in _PARSERS:
            value = getattr(self, flag)
            if isinstance(value, str | bool):
                try:
                    object.__setattr__(self, flag, parse(value))
                except InputError as error:
                    raise InputError(f"--{flag}: {error}", keyword=flag) from None
        object.__setattr__(self, "provider", providers_of(self.provider))
        check_choices(self)
        check_at_once("--batch-size", self.batch_size)
        if self.jobs is not None:
            check_threads("--jobs", self.jobs)
        for name in ("image_size", "sweep", "precision", "also"):
            values = getattr(self, name)
            if len(set(values)) < len(values) or not (values or name in ("image_size", "also")):
                raise InputError(
                    f"--{name.replace('_', '-')}: {', '.join(map(str, values)) or 'none'} found, expected some, each "
                    "once"
                )
