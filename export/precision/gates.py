"""What a file in lower precision loses against the float32 file of the same export, on validation inputs."""

import math
import time
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import numpy as np

from ...core.counted import counted
from ...core.errors import InputError
from ...core.progress import progress
from ...metrics.paired import PairedCounts, paired_counts, smallest_difference
from ...metrics.proportions import top_k
from ...metrics.ranks import ranks
from ...models.runtime_settings import RuntimeSettings
from ..bundle.manifest import MeasuredPrecision
from ..held_out import HeldOut
from ..options import ExportOptions
from ..parity.answer_comparison import Parity
from ..parity.parity_report import ParityReport
from ..runtime import Array, Model, Outputs


@dataclass(frozen=True)
class GateReport:
    """A file in lower precision beside the float32 file, on the same inputs, prepared alike, in the same minutes.

    Attributes:
        precision: Of the lower file.
        data: Where the inputs come from.
        full: The float32 file.
        lower: The other one.
        tests: By ``top1`` and ``top5``: McNemar's exact test of the two; see `paired_counts`, ``first`` is the
            float32 file.
        agreement: The answers of both, with every flip; its reference is the float32 file.
        most_predicted: The class that the lower file predicts most.
        most_predicted_share: In how many of the inputs, as a share.
        settings: Runtime, provider and threads.
        max_drop: What may be lost, in percentage points of top-1 and of top-5.
    """

    derived: ClassVar = ("top1_drop", "top5_drop", "flips", "passed", "one_input", "smallest_drop", "power")

    precision: str
    data: str
    full: MeasuredPrecision
    lower: MeasuredPrecision
    tests: dict[str, PairedCounts]
    agreement: ParityReport
    most_predicted: str
    most_predicted_share: float
    settings: RuntimeSettings
    max_drop: float

    @property
    def top1_drop(self) -> float:
        """What top-1 loses, in percentage points."""
        return 100 * (self.full.top1.value - self.lower.top1.value)

    @property
    def top5_drop(self) -> float | None:
        """What top-5 loses, in percentage points."""
        if self.full.top5 is None or self.lower.top5 is None:
            return None
        return 100 * (self.full.top5.value - self.lower.top5.value)

    @property
    def flips(self) -> int:
        """Inputs with another best class, ties among them."""
        return self.agreement.n - self.agreement.equal_top1

    @property
    def one_input(self) -> float:
        """What one input counts, in percentage points: no smaller drop can be seen."""
        return 100 / self.agreement.n

    @property
    def smallest_drop(self) -> float | None:
        """The smallest drop that McNemar's exact test can call at 5 %, in percentage points; ``None``: not any."""
        share = smallest_difference(self.agreement.n)
        return None if share is None else 100 * share

    @property
    def power(self) -> str:
        """What that many inputs can show, in words."""
        called = "no drop" if self.smallest_drop is None else f"no drop below {self.smallest_drop:.3g} points"
        return (
            f"{self.agreement.n:,} validation inputs: one is {self.one_input:.3g} points, and McNemar's exact test "
            f"would call {called} at 5 %"
        )

    @property
    def passed(self) -> bool:
        """Whether the file may be deployed."""
        return not self.exceeded()

    def exceeded(self) -> list[str]:
        """The limits that are not kept, as text."""
        found = []
        if unseen := unseen_drop(self.agreement.n, self.max_drop):
            found.append(unseen)
        if self.agreement.not_finite:
            found.append(f"{counted(self.agreement.not_finite, 'input has', 'inputs have')} NaN or infinite outputs")
        if self.agreement.inconsistent:
            have = counted(self.agreement.inconsistent, "input has", "inputs have")
            found.append(f"{have} a top-k against the file's own logits")
        found += self.agreement.shapes
        for k, drop in ((1, self.top1_drop), (5, self.top5_drop)):
            if drop is not None and drop > self.max_drop:
                found.append(f"top-{k} drops by {drop:.2f} points (allowed {self.max_drop:g})")
        return found

    def failure(self) -> str:
        """What is wrong, in one line, with what else was measured."""
        full, lower, p = self.full.top1, self.lower.top1, self.tests["top1"].p
        return (
            f"{self.precision}: {'; '.join(self.exceeded())}. On {full.n} validation inputs top-1 is "
            f"{100 * lower.value:.2f} %, that of fp32 {100 * full.value:.2f} % (McNemar p = {p:.2g}); {self.flips} "
            f"best classes flip; class {self.most_predicted!r} takes {self.most_predicted_share:.0%} of the "
            f"predictions; {self.power}"
        )


def unseen_drop(n: int, max_drop: float) -> str | None:
    """Why n validation inputs cannot show such a drop, in words: one of them is more points than may be lost."""
    if max_drop * n >= 100:
        return None
    enough = f"at least {math.ceil(100 / max_drop)} of them, or " if max_drop else ""
    return (
        f"--max-drop: {max_drop:g} points on {n} validation inputs found, where one input is {100 / n:.3g} points and "
        f"no smaller drop can be seen; expected {enough}--max-drop {math.ceil(1e4 / n) / 100:g}"
    )


def measure_gate(full: Model, lower: Model, validation: HeldOut, options: ExportOptions) -> GateReport:
    """Run the float32 file and a lower one over validation inputs, batch by batch in turn.

    Raises:
        InputError: Not one input could be read.
    """
    labels = full.metadata.labels
    sides = (_Side(full), _Side(lower))
    agreement = Parity(lower.path.name, labels, tolerance=0.0, exact=False, against="the float32 file")
    with progress("Measuring precision", len(validation), "inputs") as advance:
        batches = validation.batches(full.metadata.batch_size(options.batch_size))
        first = next(batches, None)
        if first is None:
            raise InputError(f"{validation.name}: none of the {len(validation)} validation inputs could be read")
        for model in (full, lower):
            model.run(first.inputs)  # warm up
        for batch in chain([first], batches):
            answers = [side.run(batch.inputs, batch.labels) for side in sides]
            agreement.add(batch.ids, *answers)
            advance(len(batch.ids))
    counts = np.bincount(np.concatenate(sides[1].best))
    ours, theirs = (np.concatenate(side.ranks) for side in sides)
    return GateReport(
        precision=lower.metadata.precision,
        data=validation.name,
        full=sides[0].measured(),
        lower=sides[1].measured(),
        tests={f"top{k}": paired_counts(ours, theirs, k) for k in (1, 5) if k <= len(labels)},
        agreement=agreement.report(),
        most_predicted=labels[counts.argmax()],
        most_predicted_share=float(counts.max() / counts.sum()),
        settings=lower.settings,
        max_drop=options.max_drop,
    )


class _Side:
    """One of the two files while it is measured."""

    def __init__(self, model: Model) -> None:
        self._model, self._seconds = model, 0.0
        self.ranks: list[Array] = []
        self.best: list[Array] = []

    def run(self, inputs: Array, labels: Array) -> Outputs:
        fed = self._model.feed(inputs)
        start = time.perf_counter()
        outputs = self._model.answer(fed)
        self._seconds += time.perf_counter() - start
        self.ranks.append(ranks(outputs.logits, labels))
        self.best.append(outputs.topk_indices[:, 0])
        return outputs

    def measured(self) -> MeasuredPrecision:
        found, classes = np.concatenate(self.ranks), len(self._model.metadata.labels)
        top1 = top_k(found, 1, classes)
        if top1 is None:
            raise ValueError("a classifier without classes")
        return MeasuredPrecision(top1, top_k(found, 5, classes), len(found) / self._seconds)
