"""How an exported file's answers compare to the Python module's."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Self

import numpy as np

SOFTMAX = 1e-5
EXCUSED = ("tie", "within tolerance")


@dataclass(frozen=True)
class Flip:
    """An input for which the two answers differ.

    Attributes:
        id: The sample.
        kind: ``top1``, or ``topk`` where the set of the k best differs.
        reference: Names of the classes in the Python module's answer that the file does not give.
        candidate: Names of those that the file gives in their place.
        margin: How far the former lead the latter, in logits of the Python module.
        verdict: ``tie`` (margin 0), ``within tolerance``, ``rounded to a tie`` (the file's own logits of both are
            equal), or ``different``.
    """

    id: str
    kind: Literal["top1", "topk"]
    reference: tuple[str, ...]
    candidate: tuple[str, ...]
    margin: float
    verdict: str


@dataclass(frozen=True)
class ParityReport:
    """How a file's answers compare to the Python module's.

    Attributes:
        name: The file.
        against: Whose answers the file's are compared with, as a rule the Python module's.
        n: Inputs compared.
        k: Size of the compared top-k set.
        exact: Whether the file computes what the Python module does. One in lower precision does not: flips and
            differences are reported, and judged by a `GateReport`.
        tolerance: In logits: a flip on a margin up to this is excused.
        allowed_difference: The largest difference of a logit that passes.
        max_abs_difference: Largest absolute difference of a logit, of rows that are finite in both.
        mean_abs_difference: Mean absolute difference of the logits, of the same rows.
        max_score_difference: Largest absolute difference of a score or probability, of the same rows.
        largest_logit: Largest absolute logit of the Python module.
        equal_top1: Inputs with the same best class.
        equal_topk: Inputs with the same set of k best classes.
        batches: By batch size (1, 2, 3, 5, 7, 67, and those of the comparison itself), the largest difference of a
            logit.
        share: The largest difference that passes as a share of the largest logit; ``None`` where somebody asked for a
            tolerance.
        inconsistent: Inputs whose top-k, scores or probabilities do not follow from the file's own logits and the rule
            for ties; an input counts at every batch size at which it was run.
        not_finite: Inputs with NaN or infinity in any output of either, counted likewise.
        answers: How many answers these two are of: of every input at every batch size.
        shapes: Outputs of another dtype or shape, or missing, one line each; these are not compared.
        flips: Every flip.
    """

    derived: ClassVar = ("passed",)

    name: str
    against: str
    n: int
    k: int
    exact: bool
    tolerance: float
    allowed_difference: float
    max_abs_difference: float
    mean_abs_difference: float
    max_score_difference: float
    largest_logit: float
    equal_top1: int
    equal_topk: int
    batches: dict[int, float]
    share: float | None
    inconsistent: int
    not_finite: int
    shapes: tuple[str, ...]
    flips: tuple[Flip, ...]
    answers: int = 0

    @property
    def different(self) -> tuple[Flip, ...]:
        """The flips that are neither ties nor within tolerance."""
        return tuple(flip for flip in self.flips if flip.verdict not in EXCUSED)

    @property
    def passed(self) -> bool:
        """Whether the file may be deployed."""
        near = self.max_score_difference <= self.allowed_difference + 2 * softmax_limit(self.largest_logit)
        equal = self.worst <= self.allowed_difference and near and not self.different
        return (equal or not self.exact) and not (self.inconsistent or self.not_finite or self.shapes)

    @property
    def worst(self) -> float:
        """Largest difference of a logit at any batch size."""
        return max([self.max_abs_difference, *self.batches.values()])

    def furthest(self, digits: str) -> str:
        """`worst` in so many digits, or that there is none."""
        return "NaN or infinite" if self.not_finite else format(self.worst, digits)

    def failure(self) -> str:
        """What is wrong, in one line."""
        broken = (
            f"of {self.answers} answers, all batch sizes together, {self.not_finite} have NaN or infinite outputs and "
            f"{self.inconsistent} a top-k against their logits"
        )
        if self.shapes:
            broken += f"; {'; '.join(self.shapes)}"
        if not self.exact:
            return f"{self.name}: on {self.n} held-out inputs, {broken}"
        named = ", ".join(f"{flip.id} (margin {flip.margin:.3g})" for flip in self.different[:3])
        return (
            f"{self.name} does not answer as {self.against} on {self.n} held-out inputs: "
            f"{len(self.different)} flips beyond the tolerance of {self.tolerance:g}{': ' + named if named else ''}; "
            f"largest difference {self.furthest('.3g')} (allowed {self.allowed_difference:.3g}); {broken}"
        )

    @property
    def flipped(self) -> int:
        """How many inputs have a flip of any kind."""
        return len({flip.id for flip in self.flips})


@dataclass(frozen=True)
class ParitySummary:
    """A `ParityReport` without the list of flips, counts as shares.

    Attributes:
        n: Inputs compared.
        k: Size of the compared top-k set.
        exact: Whether the file computes what the Python module does.
        tolerance: In logits: a flip on a margin up to this is excused.
        max_abs_difference: Largest absolute difference of a logit.
        mean_abs_difference: Mean absolute difference of the logits.
        top1_equal: Share of the inputs with the same best class.
        topk_equal: Share of the inputs with the same set of k best classes.
        flips: Inputs with a flip of any kind.
        flips_different: Flips that are neither ties nor within tolerance.
        passed: Whether the file may be deployed.
        allowed_difference: The largest difference of a logit that passes; ``None`` in the first bundles.
        share: The same as a share of the largest logit; ``None`` where somebody asked for a tolerance.
    """

    n: int
    k: int
    exact: bool
    tolerance: float
    max_abs_difference: float
    mean_abs_difference: float
    top1_equal: float
    topk_equal: float
    flips: int
    flips_different: int
    passed: bool
    allowed_difference: float | None = None
    share: float | None = None

    @classmethod
    def of(cls, report: ParityReport) -> Self:
        """The summary of a report."""
        counted = {
            "top1_equal": report.equal_top1 / report.n,
            "topk_equal": report.equal_topk / report.n,
            "flips": report.flipped,
            "flips_different": len(report.different),
        }
        same = {one.name: getattr(report, one.name) for one in fields(cls) if one.name not in counted}
        return cls(**same | counted)


def softmax_limit(largest: Any) -> Any:
    """How far rounding moves a float32 softmax of logits, the largest of which is so large."""
    return SOFTMAX + 4 * np.finfo(np.float32).eps * largest
