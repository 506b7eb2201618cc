"""The options of a loss: each one's default, its check and its line of documentation stand here and nowhere else."""

import ast
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache, partial
from numbers import Integral
from types import NoneType
from typing import Any, Self, TypedDict, Unpack

import torch

from ..loss_methods import DISTRIBUTIONS, METHODS, SOFTMAX_OVER, TOP1_MODES, default_inverse_temperature
from .checks import Check, choice, number, positive, truth

IMPLEMENTATIONS = ("auto", "torch", "triton")
REDUCTIONS = ("mean", "sum", "none")
_OF_A_CALL = ("ignore_index", "reduction", "label_smoothing", "inplace")


def _option(default: Any, check: Check, doc: str) -> Any:
    return field(default=default, metadata={"check": check, "doc": doc})


@dataclass(frozen=True)
class LossOptions:
    """All that a top-k cross-entropy is asked for beside its tensors; checked here, then passed on as one.

    Raises:
        ValueError: an option outside its range or of another type.
    """

    method: str = _option(
        "neuralsort",
        partial(choice, choices=METHODS),
        "`softmax` (plain cross-entropy over all classes, K = 1), `neuralsort`, `softsort`, `sinkhorn`, or the "
        "networks `odd_even`, `bitonic` and `splitter_selection`.",
    )
    m: int | None = _option(
        16,
        partial(
            number, expected="None or a whole number of at least 1", inside=lambda x: x >= 1, optional=True, whole=True
        ),
        "number of highest scores of a row that enter the relaxation, the label always among them. None keeps all "
        "classes; more than C is C.",
    )
    inverse_temperature: float | None = _option(
        None,
        partial(positive, optional=True),
        "1 / tau, above 0; for `sinkhorn` 1 / regularisation. None takes `default_inverse_temperature`.",
    )
    distribution: str = _option(
        "logistic_phi",
        partial(choice, choices=DISTRIBUTIONS),
        "for networks, whose CDF swaps: `logistic`, `logistic_phi`, `cauchy`, `gaussian`, `reciprocal`, `optimal`.",
    )
    art_lambda: float = _option(
        0.5,
        partial(number, expected="a number in [0, 1)", inside=lambda x: 0 <= x < 1),
        "lambda of `logistic_phi` (the activation replacement trick), in [0, 1).",
    )
    softsort_power: float = _option(1.0, positive, "exponent of SoftSort's distance, above 0.")
    sinkhorn_iterations: int = _option(
        10,
        partial(number, expected="a whole number of at least 1", inside=lambda x: x >= 1, whole=True),
        "at most this many Sinkhorn iterations, at least 1.",
    )
    sinkhorn_tolerance: float = _option(
        1e-6,
        partial(number, expected="a number of at least 0", inside=lambda x: x >= 0),
        "a row stops once no potential moves by more than this.",
    )
    top1_mode: str = _option(
        "smce",
        partial(choice, choices=TOP1_MODES),
        "`smce` takes k = 1 from a separate cross-entropy, `sm` from a softmax inside the logarithm, `sort` from the "
        "relaxation like every other k.",
    )
    softmax_over: str = _option(
        "candidates",
        partial(choice, choices=SOFTMAX_OVER),
        "what that softmax runs over: `candidates` (the authors' package) or `classes` (the paper's text).",
    )
    floor: float = _option(
        0.0,
        partial(number, expected="a number in [0, 0.5)", inside=lambda x: 0 <= x < 0.5),
        "e of log(p (1 - 2 e) + e), in [0, 0.5), 1e-7 in the authors' package; 0 works in the log domain and keeps the "
        "gradient of the rows that are most wrong.",
    )
    ignore_index: int = _option(
        -100,
        partial(number, expected="a whole number", whole=True),
        "rows with this label cost nothing and are not counted; padding of (B, L) labels.",
    )
    reduction: str = _option(
        "mean",
        partial(choice, choices=REDUCTIONS),
        "`mean` (0 for an empty batch or one that is wholly ignored), `sum` or `none`.",
    )
    label_smoothing: float = _option(
        0.0,
        partial(number, expected="a number in [0, 1]", inside=lambda x: 0 <= x <= 1),
        "e in [0, 1]: (1 - e) of this loss and e of the cross-entropy between all classes' softmax and uniform "
        "targets, `weight` in it as in PyTorch.",
    )
    impl: str = _option(
        "auto",
        partial(choice, choices=IMPLEMENTATIONS),
        "`triton` (fused kernels), `torch` (plain torch), or `auto`: kernels on CUDA, plain torch elsewhere and for "
        "float64. `implementation` says which.",
    )
    inplace: bool = _option(
        False, truth, "let the gradient of the logits overwrite the logits, where the implementation can."
    )

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            check(name, getattr(self, name))

    def candidates(self, num_classes: int) -> int:
        """The number of candidates of a row with `num_classes` classes."""
        return num_classes if self.m is None or num_classes < self.m else self.m

    @property
    def relaxed(self) -> bool:
        """Whether ranks beyond the first count."""
        return self.method != "softmax"

    @property
    def over_classes(self) -> bool:
        """Whether the softmax runs over all classes, so that every class has a gradient."""
        return not self.relaxed or (self.softmax_over == "classes" and self.top1_mode != "sort")

    @property
    def beta_by_row(self) -> bool:
        """Whether the inverse temperature follows from the number of a row's classes that are not masked."""
        return self.method == "sinkhorn" and self.m is None and self.inverse_temperature is None

    def beta(self, m: int) -> float:
        """The inverse temperature for rows of m candidates."""
        if self.inverse_temperature is not None:
            return self.inverse_temperature
        return default_inverse_temperature(self.method, self.distribution, self.m if self.m is not None else m)

    def changed(self, **changes: Any) -> Self:
        """The same options but for `changes`."""
        changed: Self = (_changed if torch.compiler.is_compiling() else _changed_once)(self, **changes)
        return changed

    def recorded(self) -> dict[str, Any]:
        """What the record of a run holds: the options of the formula, not those of a call."""
        return {name: value for name, value in asdict(self).items() if name not in _OF_A_CALL}

    def to_text(self) -> str:
        """All options as one text, in which operators of torch take them."""
        return ",".join([_literal(getattr(self, name)) for name in _CHECKS])

    @classmethod
    @lru_cache
    def from_text(cls, text: str) -> Self:
        """The options that `to_text` wrote."""
        return cls(*ast.literal_eval(text))


class KeywordOnly(TypedDict, total=False):
    """The types of the options after the first three, for type checkers."""

    distribution: str
    art_lambda: float
    softsort_power: float
    sinkhorn_iterations: int
    sinkhorn_tolerance: float
    top1_mode: str
    softmax_over: str
    floor: float
    ignore_index: int
    reduction: str
    label_smoothing: float
    impl: str
    inplace: bool


class LossKeywords(KeywordOnly, total=False):
    """The types of all options, for type checkers."""

    method: str
    m: int | None
    inverse_temperature: float | None


_CHECKS: dict[str, Check] = {one.name: one.metadata["check"] for one in fields(LossOptions)}


def loss_options(**options: Unpack[LossKeywords]) -> LossOptions:
    """The options of a call; equal ones are built and checked once, so that a training step does not pay for them."""
    if torch.compiler.is_compiling():
        return LossOptions(**options)
    try:
        return _built_once(**options)
    except TypeError:  # a value that cannot be hashed, which its check refuses by name
        return LossOptions(**options)


def _literal(value: Any) -> str:
    """A value as Python writes it; numbers of NumPy as Python's own, and infinity so that it can be read back."""
    if isinstance(value, (str, bool, NoneType)):
        return repr(value)
    number = int(value) if isinstance(value, Integral) else float(value)
    return "1e999" if number == float("inf") else repr(number)


@lru_cache(typed=True)
def _built_once(**options: Any) -> LossOptions:
    return LossOptions(**options)


def _changed(options: Any, **changes: Any) -> Any:
    return type(options)(**{name: getattr(options, name) for name in _CHECKS} | changes)


_changed_once = lru_cache(typed=True)(_changed)
