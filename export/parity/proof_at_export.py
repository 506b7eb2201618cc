"""Run every written file on held-out inputs beside the Python module: parity and accuracy in one pass."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch

from ...core.errors import InputError
from ...core.progress import progress
from ...metrics.equality import finite_rows
from ...metrics.proportions import Share, top_k
from ...metrics.ranks import ranks
from ...models.runtime_settings import RuntimeSettings
from ..errors import ParityError
from ..held_out import Batch, HeldOut
from ..label_agreement import check_metadata
from ..options import FP32, ExportOptions
from ..runtime import Array, Model, Outputs
from .allowed_difference import allowed_share
from .answer_comparison import Parity
from .file_runner import batches_of, check_repeats, made_up_inputs, run_file, try_ties
from .parity_report import ParityReport
from .python_module import PythonModule, python_outputs
from .training_check import RecordedAccuracy
from .verification_data import PYTHON, Recorder

FEATURE_ROWS = 1024


@dataclass(frozen=True)
class Proof:
    """What was measured of one written file.

    Attributes:
        parity: Against the Python module.
        top1: Accuracy of the file's own logits.
        top5: The same for the five best; ``None`` where there are fewer classes.
        settings: Runtime, provider and threads.
    """

    parity: ParityReport
    top1: Share
    top5: Share | None
    settings: RuntimeSettings


class Proofs(NamedTuple):
    """What was measured.

    Attributes:
        files: Of each file.
        recorder: Has seen every batch, with the logits of the Python module and of the files in lower precision.
        accuracy: Has seen what of them the Python module has right.
    """

    files: dict[str, Proof]
    recorder: Recorder
    accuracy: RecordedAccuracy


def prove(module: PythonModule, models: Mapping[str, Model], held_out: HeldOut, options: ExportOptions) -> Proofs:
    """Compare files with the Python module on every held-out input, decoded once, and at several sizes of batches.

    They are compared on a few made-up inputs too, which reach weights that no held-out input does; and what a file
    makes of equal logits is tried where its last operators can be run alone.

    Args:
        module: The Python module, and what the files must say of themselves, their precision aside.
        models: The opened files, by their names in the bundle.
        held_out: Labelled inputs.
        options: ``batch_size`` (of features, which are small, at least 1024 rows are run at once), and ``tolerance``,
            in logits, see `Parity`; ``None`` measures what rounding alone does, see `allowed_share`.

    Raises:
        ParityError: A file answers the same input differently each time, or differs beyond the tolerance; one in lower
            precision may differ, but must be finite.
        InputError: Not one input could be read.
    """
    classifier, metadata = module
    tolerance, recorder, accuracy = options.tolerance, Recorder(len(held_out)), RecordedAccuracy()
    check_metadata(models, metadata)
    size = max(options.batch_size, FEATURE_ROWS) if metadata.head_only else metadata.batch_size(options.batch_size)
    classifier.to(memory_format=torch.channels_last)
    with progress("Comparing files", len(held_out), "inputs") as advance:
        batches = held_out.batches(size)
        first = next(batches, None)
        if first is None:
            raise InputError(f"none of the {len(held_out)} held-out inputs could be read; parity cannot be proved")
        for name, model in models.items():
            check_repeats(name, model, first.inputs[:1])
        share = None if tolerance is not None else allowed_share(classifier, metadata, first.inputs)
        measured = [_Measured(name, model, tolerance or 0.0, share) for name, model in models.items()]
        for batch in chain([first], batches):
            reference = python_outputs(*module, batch.inputs)
            accuracy.add(reference.logits, batch.labels)
            answers = {one.name: one.add(batch, reference) for one in measured}
            rounded = {one.name: answers[one.name] for one in measured if not one.exact}
            recorder.add(batch, {PYTHON: reference.logits} | rounded)
            if batch is first:
                recorder.add_made_up(*_try_made_up(module, batch.inputs, measured, size))
            advance(len(batch.ids))
    proofs = {one.name: one.proof(len(metadata.labels)) for one in measured}
    for proof in proofs.values():
        if not proof.parity.passed:
            raise ParityError(proof.parity.failure(), proof.parity)
    return Proofs(proofs, recorder, accuracy)


class _Measured:
    """One file while it is compared."""

    def __init__(self, name: str, model: Model, tolerance: float, share: float | None) -> None:
        self.name, self.model, self.exact = name, model, model.metadata.precision == FP32
        self.parity = Parity(name, model.metadata.labels, tolerance, share=share, exact=self.exact)
        self.ranks: list[Array] = []

    def add(self, batch: Batch, reference: Outputs) -> Array:
        candidate = run_file(self.name, self.model, batch.inputs)
        self.parity.add(batch.ids, self._asked(reference), candidate)
        if candidate.logits.shape != reference.logits.shape:
            raise ParityError(self.parity.report().failure(), self.parity.report())
        self.ranks.append(ranks(candidate.logits, batch.labels))
        return candidate.logits

    def add_batch_size(self, inputs: Array, reference: Outputs) -> None:
        self.parity.add_batch_size(self._asked(reference), run_file(self.name, self.model, inputs))

    def _asked(self, reference: Outputs) -> Outputs:
        return reference if self.model.probabilities else reference._replace(probabilities=None)

    def proof(self, num_classes: int) -> Proof:
        found = np.concatenate(self.ranks)
        top1 = top_k(found, 1, num_classes)
        if top1 is None:
            raise ValueError("a classifier without classes")
        return Proof(self.parity.report(), top1, top_k(found, 5, num_classes), self.model.settings)


def _try_made_up(
    module: PythonModule, real: Array, measured: Iterable[_Measured], size: int
) -> tuple[Array, dict[str, Array]]:
    """Try every size of batch, ``size`` where the real inputs are fewer, on real and made-up ones; and equal logits.

    Returns:
        The inputs whose answers are finite, and the logits by who answered, as `Recorder.add` takes them.
    """
    inputs = np.concatenate([real[:2], made_up_inputs(real)])
    inputs = inputs[finite_rows(*python_outputs(*module, inputs))]
    reference = python_outputs(*module, inputs)
    logits = {PYTHON: reference.logits}
    for one in measured:
        for rows in batches_of(one.model, inputs, size if len(real) < size else 1):
            one.add_batch_size(inputs[rows], reference.rows(rows))
        if not one.exact:
            logits[one.name] = np.concatenate([run_file(one.name, one.model, row[None]).logits for row in inputs])
        try_ties(one.name, one.model, one.parity)
    return inputs, logits
