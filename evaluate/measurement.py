"""One pass of a file over held-out inputs."""

import time
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from ..export.held_out import Batch, HeldOut
from ..export.parity import follows_logits
from ..export.runtime import Array, Model, Outputs
from ..models.errors import InputError
from ..trainer.accuracy import ranks
from ..trainer.progress import progress


@dataclass
class Measurement:
    """What one pass gives, input by input in the order of the data.

    Attributes:
        ids: Sample ids.
        labels: ``(N,)`` int64.
        ranks: ``(N,)`` int64, how many classes come before the label; C for a row with NaN.
        topk_indices: ``(N, k)`` int64.
        topk_scores: ``(N, k)`` float32.
        logits: ``(N, C)`` float32, or ``None`` where they were not kept.
        not_finite: Rows with NaN or infinite logits.
        inconsistent: Rows whose ``topk_indices`` contradict their logits.
        session_seconds: In the runtime.
        seconds: In all.
        first_run_seconds: The warm-up on the first batch, not in ``session_seconds``.
    """

    ids: list[str]
    labels: Array
    ranks: Array
    topk_indices: Array
    topk_scores: Array
    logits: Array | None
    not_finite: int
    inconsistent: int
    session_seconds: float
    seconds: float
    first_run_seconds: float


@dataclass
class _Parts:
    """What grows batch by batch."""

    ids: list[str] = field(default_factory=list)
    columns: dict[str, list[Array]] = field(default_factory=dict)
    not_finite: int = 0
    inconsistent: int = 0

    def add(self, batch: Batch, outputs: Outputs, keep_logits: bool) -> None:
        columns: dict[str, Any] = {
            "labels": batch.labels,
            "ranks": ranks(outputs.logits, batch.labels),
            "topk_indices": outputs.topk_indices,
            "topk_scores": outputs.topk_scores,
        }
        if keep_logits:
            columns["logits"] = outputs.logits
        for name, values in columns.items():
            self.columns.setdefault(name, []).append(values)
        self.ids += batch.ids
        finite = np.isfinite(outputs.logits).all(1)
        self.not_finite += int((~finite).sum())
        self.inconsistent += int((~follows_logits(outputs) & finite).sum())


def measure(model: Model, held_out: HeldOut, batch_size: int, *, keep_logits: bool) -> Measurement:
    """Run a file over held-out inputs; the first batch is run once before the clock starts.

    Raises:
        InputError: Not one input could be read.
    """
    parts, session_seconds = _Parts(), 0.0
    with progress("Evaluating", len(held_out), "inputs") as advance:
        start = time.perf_counter()
        batches = held_out.batches(model.metadata.batch_size(batch_size))
        first = next(batches, None)
        if first is None:
            raise InputError(f"{held_out.name}: none of the {len(held_out)} held-out inputs could be read")
        first_run_seconds = _timed(model, first.inputs)[1]
        for batch in chain([first], batches):
            outputs, seconds = _timed(model, batch.inputs)
            session_seconds += seconds
            parts.add(batch, outputs, keep_logits)
            advance(len(batch.ids))
        total = time.perf_counter() - start - first_run_seconds
    columns: dict[str, Any] = {name: np.concatenate(values) for name, values in parts.columns.items()}
    return Measurement(
        ids=parts.ids,
        **({"logits": None} | columns),
        not_finite=parts.not_finite,
        inconsistent=parts.inconsistent,
        session_seconds=session_seconds,
        seconds=total,
        first_run_seconds=first_run_seconds,
    )


def _timed(model: Model, inputs: Array) -> tuple[Outputs, float]:
    """The answer to a batch, and the seconds that the runtime took."""
    fed = model.feed(inputs)
    start = time.perf_counter()
    outputs = model.answer(fed)
    return outputs, time.perf_counter() - start
