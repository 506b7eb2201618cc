"""One pass of a file over held-out inputs."""

import time
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from ...core.errors import InputError
from ...core.progress import progress
from ...export.held_out import Batch, HeldOut
from ...export.parity.answer_comparison import follows_logits
from ...export.runtime import Array, Model, Outputs
from ..metrics import RowScores, Scorer
from ..options import EvaluationOptions
from .batch_sizes import BatchSizes

KEPT = 5


@dataclass(frozen=True)
class Measurement:
    """What one pass gives, input by input in the order of the data.

    Attributes:
        ids: Ids of the inputs that were read and have a right class.
        rows: Which inputs of the data these are.
        scores: Of these, among all classes of the classifier. Classes are numbered by `class_order`.
        subset: Of these, among the classes of the data alone; ``None`` where these are all.
        logits: ``(N, C)`` float32, or ``None`` where they were not kept.
        not_finite: Rows with NaN or infinite logits.
        inconsistent: Rows whose ``topk_indices`` contradict their logits.
        ran: Inputs that were run, those without a right class among them.
        session_seconds: In the runtime.
        seconds: In all, without the warm-up.
        first_run_seconds: The warm-up on the first batch.
        varies: Whether the first batch had other logits when it was run again.
        batch_dependent: Whether an input has other logits in a batch of another size, see `BatchSizes`.
        not_finite_at: Batch sizes at which an input has NaN or infinite logits that is finite at another one.
    """

    ids: list[str]
    rows: list[int]
    scores: RowScores
    subset: RowScores | None
    logits: Array | None
    not_finite: int
    inconsistent: int
    ran: int
    session_seconds: float
    seconds: float
    first_run_seconds: float
    varies: bool
    batch_dependent: bool
    not_finite_at: list[int]


@dataclass
class _Collector:
    """What grows batch by batch."""

    held_out: HeldOut
    order: Array
    scorers: list[Scorer]
    keep_logits: bool
    ids: list[str] = field(default_factory=list)
    logits: list[Array] = field(default_factory=list)
    not_finite: int = 0
    inconsistent: int = 0

    def add(self, batch: Batch, outputs: Outputs) -> None:
        sets = self.held_out.sets
        labels = np.argsort(self.order)[batch.labels] if sets is None else sets[self.held_out.rows_of(batch.ids)]
        logits = outputs.logits[:, self.order]
        for scorer in self.scorers:
            scorer.add(logits, labels)
        if self.keep_logits:
            self.logits.append(logits)
        self.ids += batch.ids
        finite = np.isfinite(outputs.logits).all(axis=1)
        self.not_finite += int((~finite).sum())
        self.inconsistent += int((~follows_logits(outputs) & finite).sum())


def measure(model: Model, held_out: HeldOut, options: EvaluationOptions) -> Measurement:
    """Run a file over held-out inputs; the first batch is run once before the clock starts.

    So is the first batch of any further size, but on the CPU, which compiles nothing for it.

    Args:
        model: The file.
        held_out: The inputs as it takes them.
        options: ``batch_size``, ``k`` (at least 5 answers are kept), and ``save_logits``.

    Raises:
        InputError: Not one input could be read.
    """
    num_logits, k = len(model.metadata.labels), max(KEPT, *options.k)
    scorers = [Scorer(num_logits, k=k)]
    if len(held_out.index) < num_logits:
        scorers.append(Scorer(num_logits, classes=np.arange(len(held_out.index)), k=k))
    order = class_order(held_out.index, num_logits)
    found, session_seconds = _Collector(held_out, order, scorers, options.save_logits), 0.0
    with progress("Evaluating", len(held_out), "inputs") as advance:
        start = time.perf_counter()
        batches = held_out.batches(model.metadata.batch_size(options.batch_size))
        first = next(batches, None)
        if first is None:
            raise InputError(f"{held_out.name}: none of the {len(held_out)} held-out inputs could be read")
        begun = time.perf_counter()
        together, first_run_seconds = _timed(model, first.inputs)
        sizes = BatchSizes(model)
        sizes.look(first.inputs, together.logits)
        start += time.perf_counter() - begun
        warm = {len(first.ids)}
        for batch in chain([first], batches):
            if not model.provider.is_cpu and len(batch.ids) not in warm:  # it may compile the graph for this size
                start += _timed(model, batch.inputs)[1]
                warm.add(len(batch.ids))
            outputs, seconds = _timed(model, batch.inputs)
            session_seconds += seconds
            if batch is first:
                sizes.repeat(together.logits, outputs.logits)
            found.add(batch, outputs)
            advance(len(batch.ids))
        total = time.perf_counter() - start
        if len(batch.ids) != len(first.ids):
            sizes.look(batch.inputs, outputs.logits)
    kept = [found.ids[row] for row in scorers[0].rows]
    return Measurement(
        ids=kept,
        rows=held_out.rows_of(kept),
        scores=scorers[0].scores(),
        subset=scorers[1].scores() if len(scorers) > 1 else None,
        logits=np.concatenate(found.logits)[scorers[0].rows] if options.save_logits else None,
        not_finite=found.not_finite,
        inconsistent=found.inconsistent,
        ran=len(found.ids),
        session_seconds=session_seconds,
        seconds=total,
        first_run_seconds=first_run_seconds,
        varies=sizes.varies,
        batch_dependent=sizes.differ,
        not_finite_at=sizes.not_finite,
    )


def class_order(index: Array, num_logits: int) -> Array:
    """The outputs in the order in which their classes are numbered: those of the held-out set in its order, the others.

    Equal scores go by that order, so that a file with its outputs in another one gives the same answers.

    Args:
        index: ``(S,)`` the output of each class of the held-out set.
        num_logits: C.

    Returns:
        ``(C,)`` int64.
    """
    return np.concatenate([index, np.setdiff1d(np.arange(num_logits), index)])


def _timed(model: Model, inputs: Array) -> tuple[Outputs, float]:
    """The answer to a batch, and the seconds that the runtime took."""
    fed = model.feed(inputs)
    start = time.perf_counter()
    outputs = model.answer(fed)
    seconds = time.perf_counter() - start
    return model.checked(outputs), seconds
