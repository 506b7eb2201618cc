"""The options of a loss: each one's default, its check and its line of documentation stand here and nowhere else.

No import of torch: the settings of training, which the command line reads, are these too.
"""

import ast
from dataclasses import asdict, dataclass, fields
from functools import lru_cache, partial
from numbers import Integral
from types import NoneType
from typing import Any, Self, TypedDict

from ..core.json_values import JsonObject
from ..core.settings import MOST, Bound, setting
from .loss_defaults import (
    CROSS_ENTROPY,
    DISTRIBUTIONS,
    METHOD_DEFAULTS,
    METHODS,
    OBJECTIVE,
    SOFTMAX_OVER,
    TOP1_MODES,
    default_inverse_temperature,
)
from .option_checks import ABOVE_0, Check, choice, is_positive, number, positive, truth

HINGES = ("alpha", "beta")
IMPLEMENTATIONS = ("auto", "torch", "triton")
REDUCTIONS = ("mean", "sum", "none")
_OF_A_CALL = ("ignore_index", "reduction", "label_smoothing", "inplace")
_NUMBER = (int, float)


@dataclass(frozen=True)
class LossSettings:
    """The options of the formula, which a training run takes too."""

    m: int | None = setting(
        16,
        "Highest scores of a row that enter the loss, the label's always among them. None keeps all classes; more than "
        "C is C.",
        check=partial(
            number,
            expected=f"None or a whole number of at least 1, below {MOST}",
            inside=lambda x: 1 <= x < MOST,
            optional=True,
            whole=True,
        ),
    )
    inverse_temperature: float | None = setting(
        None,
        "Sharpness, 1 / tau, above 0; for sinkhorn 1 / regularisation, for lapsum and dftopk "
        "1 / alpha, for optimal_transport and soft_rank 1 / epsilon, for perturbed 1 / sigma, for sparse_topk "
        "1 / lambda, for the noised losses 1 / epsilon. None takes the method's own.",
        left_out="the loss's",
        bounds=(Bound(_NUMBER, is_positive, f"a number {ABOVE_0}"),),
        check=partial(positive, optional=True),
    )
    distribution: str = setting(
        "logistic_phi",
        "CDF by which the comparators of a sorting network swap.",
        values=DISTRIBUTIONS,
        check=partial(choice, choices=DISTRIBUTIONS),
    )
    art_lambda: float = setting(
        0.5,
        "Lambda of the distribution logistic_phi (the activation replacement trick), in [0, 1).",
        check=partial(number, expected="a number in [0, 1)", inside=lambda x: 0 <= x < 1),
    )
    softsort_power: float = setting(1.0, "Exponent of SoftSort's distance, above 0.", check=positive)
    sinkhorn_iterations: int = setting(
        10,
        "At most this many Sinkhorn iterations, at least 1.",
        check=partial(
            number,
            expected="a whole number of at least 1 and at most 1000000",
            inside=lambda x: 1 <= x <= 1_000_000,
            whole=True,
        ),
    )
    sinkhorn_tolerance: float = setting(
        1e-6,
        "A row's Sinkhorn iterations stop once no potential moves by more than this.",
        check=partial(number, expected="a number of at least 0", inside=lambda x: x >= 0),
    )
    samples: int = setting(
        64,
        "Draws of noise over which perturbed and the noised losses take the mean, at least 1.",
        bounds=(Bound(int, lambda x: 0 < x <= 1_000_000, "1 to 1,000,000"),),
        check=partial(
            number, expected="a whole number in 1..1000000", inside=lambda x: 1 <= x <= 1_000_000, whole=True
        ),
    )
    noise_seed: int = setting(
        0,
        "Fixes that noise, which is the same in every call.",
        check=partial(
            number,
            expected=f"a whole number of at least 0 and below {MOST}",
            inside=lambda x: 0 <= x < MOST,
            whole=True,
        ),
    )
    top1_mode: str = setting(
        "smce",
        "How top-1 enters the loss: smce takes k = 1 from a cross-entropy of its own, which still pulls where top-k is "
        "reached already, as with few classes; sm from a softmax inside the logarithm; sort from the method like every "
        "other k.",
        values=TOP1_MODES,
        check=partial(choice, choices=TOP1_MODES),
    )
    softmax_over: str = setting(
        "candidates",
        "What that softmax runs over: candidates (the authors' package) or classes (the paper's text).",
        values=SOFTMAX_OVER,
        check=partial(choice, choices=SOFTMAX_OVER),
    )
    floor: float = setting(
        0.0,
        "e of log(p (1 - 2 e) + e), in [0, 0.5), 1e-7 in the authors' package; 0 works in the log domain and keeps the "
        "gradient of the rows that are most wrong.",
        check=partial(number, expected="a number in [0, 0.5)", inside=lambda x: 0 <= x < 0.5),
    )
    hinge: str = setting(
        "alpha",
        "Variant of topk_hinge: alpha, the positive part of the mean of the k highest, or beta, the mean of their "
        "positive parts.",
        values=HINGES,
        check=partial(choice, choices=HINGES),
    )
    comp_sum_q: float = setting(
        0.7,
        "q of comp_sum's (1 - p^q) / q, in [-1, 1]: -1 sum-exponential, 0 cross-entropy, between 0 and 1 generalised "
        "cross-entropy, 1 mean absolute error.",
        bounds=(Bound(_NUMBER, lambda x: -1 <= x <= 1, "a number in [-1, 1]"),),
        check=partial(number, expected="a number in [-1, 1]", inside=lambda x: -1 <= x <= 1),
    )
    hardest_share: float = setting(
        0.5,
        "Share of a batch's rows, in (0, 1], over whose losses average_topk takes the mean: those that cost most.",
        bounds=(Bound(_NUMBER, lambda x: 0 < x <= 1, "above 0 and at most 1"),),
        check=partial(number, expected="a number in (0, 1]", inside=lambda x: 0 < x <= 1),
    )
    max_margin: float = setting(
        1.0,
        "Margin of imbalanced_noised_topk for the class with fewest rows of training, above 0; another's is smaller by "
        "the fourth root of how many more it has.",
        bounds=(Bound(_NUMBER, is_positive, f"a number {ABOVE_0}"),),
        check=positive,
    )
    label_smoothing: float = setting(
        0.0,
        "e in [0, 1): (1 - e) of this loss and e of the cross-entropy between all classes' softmax and uniform "
        "targets, class weights in it as in PyTorch.",
        bounds=(Bound(_NUMBER, lambda x: 0 <= x < 1, "0 or more and below 1"),),
        check=partial(number, expected="a number in [0, 1]", inside=lambda x: 0 <= x <= 1),
    )


@dataclass(frozen=True)
class LossOptions(LossSettings):
    """All that a top-k cross-entropy is asked for beside its tensors; checked here, then passed on as one.

    Raises:
        ValueError: an option outside its range or of another type.
    """

    method: str = setting(
        "neuralsort",
        "One of `METHODS`: `softmax` (plain cross-entropy over all classes, K = 1), a relaxation, a membership or an "
        "objective; docs/losses.md tells what each is.",
        check=partial(choice, choices=METHODS),
    )
    ignore_index: int = setting(
        -100,
        "Rows with this label cost nothing and are not counted; padding of (B, L) labels.",
        check=partial(number, expected="a whole number of 64 bits", inside=lambda x: -MOST <= x < MOST, whole=True),
    )
    reduction: str = setting(
        "mean",
        "`mean` (0 for an empty batch or one that is wholly ignored), `sum` or `none`.",
        check=partial(choice, choices=REDUCTIONS),
    )
    impl: str = setting(
        "auto",
        "`triton` (fused kernels), `torch` (plain torch), or `auto`: kernels on CUDA where the method has one, plain "
        "torch elsewhere and for float64. `implementation` says which.",
        check=partial(choice, choices=IMPLEMENTATIONS),
    )
    inplace: bool = setting(
        False, "Let the gradient of the logits overwrite the logits, where the implementation can.", check=truth
    )

    _text = ""  # no field

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))

    def candidates(self, num_classes: int) -> int:
        """The number of candidates of a row with `num_classes` classes."""
        return num_classes if self.m is None or num_classes < self.m else self.m

    @property
    def relaxed(self) -> bool:
        """Whether ranks beyond the first count."""
        return METHOD_DEFAULTS[self.method].kind != CROSS_ENTROPY

    @property
    def over_classes(self) -> bool:
        """Whether the softmax runs over all classes, so that every class has a gradient."""
        kind = METHOD_DEFAULTS[self.method].kind
        separate = kind != OBJECTIVE and self.softmax_over == "classes" and self.top1_mode != "sort"
        return kind == CROSS_ENTROPY or separate

    @property
    def counts_classes(self) -> bool:
        """Whether the rows of training of each class matter."""
        return "class_counts" in METHOD_DEFAULTS[self.method].reads

    @property
    def over_rows(self) -> bool:
        """Whether what a row costs depends on the other rows of its batch."""
        return "hardest_share" in METHOD_DEFAULTS[self.method].reads

    @property
    def beta_by_row(self) -> bool:
        """Whether the inverse temperature follows from the number of a row's classes that are not masked."""
        return self.method == "sinkhorn" and self.m is None and self.inverse_temperature is None

    def beta(self, m: int) -> float:
        """The inverse temperature for rows of m candidates."""
        if self.inverse_temperature is not None:
            return self.inverse_temperature
        return default_inverse_temperature(self.method, self.distribution, self.m if self.m is not None else m)

    def recorded(self) -> JsonObject:
        """What the record of a run holds: the options of the formula, not those of a call."""
        return {name: value for name, value in asdict(self).items() if name not in _OF_A_CALL}

    def to_text(self) -> str:
        """All options as one text, in which operators of torch take them."""
        return self._text or ",".join([_literal(getattr(self, name)) for name in _CHECKS])

    def remember_text(self) -> None:
        """Write the text once, so that a compiled graph need not be guarded by each option."""
        object.__setattr__(self, "_text", self.to_text())

    @classmethod
    @lru_cache
    def from_text(cls, text: str) -> Self:
        """The options that `to_text` wrote."""
        return cls(*ast.literal_eval(text))


class KeywordOnly(TypedDict, total=False):
    """The types of the options after the first three, for type checkers, which read nothing that is computed."""

    distribution: str
    art_lambda: float
    softsort_power: float
    sinkhorn_iterations: int
    sinkhorn_tolerance: float
    samples: int
    noise_seed: int
    top1_mode: str
    softmax_over: str
    floor: float
    hinge: str
    comp_sum_q: float
    hardest_share: float
    max_margin: float
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


def _literal(value: Any) -> str:
    """A value as Python writes it; numbers of NumPy as Python's own, and infinity so that it can be read back."""
    if isinstance(value, (str, bool, NoneType)):
        return repr(value)
    number = int(value) if isinstance(value, Integral) else float(value)
    return "1e999" if number == float("inf") else repr(number)
