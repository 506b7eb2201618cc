"""Does a bundle still answer as it did when it was exported, on this machine and with these versions?"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from ...core.arguments import typed
from ...core.coded_warnings import CodedWarning
from ...core.count_limits import check_at_once
from ...core.environment import versions
from ...core.errors import InputError
from ...models.execution_provider import AnyProvider
from ...models.runtime_settings import RuntimeSettings
from ...trainer.features.feature_set import FeatureSet
from ..bundle.bundle import Bundle
from ..bundle.tampering import check_fields, check_listed, check_stated
from ..errors import ParityError
from ..held_out import Batch, HeldOut
from ..label_agreement import check_metadata
from ..metadata import Metadata
from ..options import FP32
from ..runtime import Array, Model, Outputs
from ..training_source import held_out_features, held_out_images
from .allowed_difference import MOST, MOST_ASKED, MOST_LOWER
from .answer_comparison import Parity
from .file_runner import answer_to, batches_of, check_repeats, drawn_size, made_up_inputs, run_file, try_ties
from .parity_report import ParityReport, ParitySummary
from .verification_data import Reference, digest


@dataclass(frozen=True)
class Verification:
    """What `verify` found.

    Attributes:
        bundle: The bundle.
        data: Where the inputs come from.
        files: For each file the comparison with the Python module's answers at the export; for one in lower precision
            with its own, from which it may differ by as much as it then differed from the module's.
        settings: For each file runtime, provider and threads.
        changed: Ids of inputs that have other pixels or features here than at the export; they are not compared.
        versions: Python and packages, here.
        exported_with: The same at the export.
        warnings: Files in the folder that nobody vouches for.
    """

    derived: ClassVar = ("passed",)

    bundle: str
    data: str
    files: dict[str, ParityReport]
    settings: dict[str, RuntimeSettings]
    changed: list[str]
    versions: dict[str, str]
    exported_with: dict[str, str]
    warnings: list[CodedWarning]

    @property
    def passed(self) -> bool:
        """Whether every file answers as it did."""
        return all(report.passed for report in self.files.values())

    def check(self) -> None:
        """Raise a `ParityError` for the first file that does not answer as it did."""
        for report in self.files.values():
            if not report.passed:
                raise ParityError(f"{self.bundle}: {report.failure()}", self)


@typed
def verify(
    bundle: str | Path | Bundle,
    *,
    data: str | Path | FeatureSet | None = None,
    provider: AnyProvider = "cpu",
    batch_size: int = 64,
    threads: int | None = None,
) -> Verification:
    """Check a bundle's hashes, and compare its files with the answers that it carries from its export.

    Args:
        bundle: A bundle, or its folder.
        data: The held-out images of the export (for a head alone the feature set), of which those are read whose
            answers the bundle carries, at most 256; by default the few inputs in the bundle itself.
        provider: See `headsmith.export.open_model`; it runs, or it is an error.
        batch_size: Inputs a run.
        threads: Threads of the runtime; ``None`` takes ``OMP_NUM_THREADS``, else the CPUs of this process.

    Returns:
        The comparison. It is no error that it failed: see `Verification.check`.

    Raises:
        ParityError: A file cannot run its inputs, or answers the same one differently each time.
        InputError: A damaged bundle, a provider that does not run here, no input a run, or none of the export's inputs
            in ``data``.
    """
    check_at_once("--batch-size", batch_size)
    bundle = bundle if isinstance(bundle, Bundle) else Bundle.load(bundle)
    warnings = check_listed(bundle)  # nothing is opened before it is what was exported
    check_fields(bundle)
    reference = Reference.load(bundle.path)
    models = {
        name: bundle.open(format, provider=provider, threads=threads) for format, name in bundle.model_files.items()
    }
    metadata = next(iter(models.values())).metadata
    if reference.metadata is not None:
        check_metadata(models, reference.metadata)
    parities = {
        name: _parity(name, model, bundle.manifest.parity[name], reference.largest(name))
        for name, model in models.items()
    }
    asked = "probabilities" in bundle.manifest.outputs
    met: set[tuple[str, str]] = set()
    others: dict[str, None] = {}
    compared = 0
    for batch in _inputs(bundle, reference, metadata, data, metadata.batch_size(batch_size)):
        keys = [(sample, digest(values)) for sample, values in zip(batch.ids, batch.inputs, strict=True)]
        same = [row for row, key in enumerate(keys) if key in reference.rows]
        met |= {keys[row] for row in same}
        others |= {sample: None for sample, sha256 in keys if (sample, sha256) not in reference.rows}
        ids, places = [batch.ids[row] for row in same], [reference.rows[keys[row]] for row in same]
        for name, model in models.items() if same else ():
            expected = answer_to(reference.logits(name, places), probabilities=asked and model.probabilities)
            one = batch.inputs[same[:1]]
            if not compared:
                check_repeats(name, model, one)
            check_stated(bundle.manifest, model, one, run_file(name, model, one))
            sizes = metadata.batch_size(batch_size), drawn_size(bundle.manifest.files[name].sha256)
            _compare(name, parities[name], ids, expected, batch.inputs[same], model, sizes)
        compared += len(same)
    for name, model in models.items():
        for values, logits in zip(reference.made_up, reference.made_up_logits(name), strict=True):
            expected = answer_to(logits[None], probabilities=asked and model.probabilities)
            parities[name].add_batch_size(expected, run_file(name, model, values[None]))
        try_ties(name, model, parities[name])
    lost = {sample for sample, sha256 in reference.rows if (sample, sha256) not in met}
    changed = [sample for sample in others if sample in lost]
    where = str(bundle.path) if data is None else str(data)
    if not compared:
        raise InputError(
            f"{where}: has none of the {len(reference.ids)} inputs whose answers the bundle carries, or only with "
            "other pixels; name the held-out images of the export with --data, or leave it out"
        )
    return Verification(
        bundle=bundle.source,
        data=where,
        files={name: parity.report() for name, parity in parities.items()},
        settings={name: model.settings for name, model in models.items()},
        changed=changed,
        versions=versions(),
        exported_with=bundle.manifest.versions,
        warnings=warnings,
    )


def _parity(name: str, model: Model, exported: ParitySummary, largest: float) -> Parity:
    """With the limits of the export, but never wider ones than any export needs: a manifest can be edited."""
    labels = model.metadata.labels
    if model.metadata.precision == FP32:
        tolerance, allowed = exported.tolerance, exported.allowed_difference
        allowed = tolerance * max(1.0, largest) if allowed is None else allowed
        asked = exported.share is None  # as in bundles from before it was written
        most = MOST_ASKED * max(1.0, largest) if asked else MOST * largest
        against = "the Python module at the export"
        return Parity(name, labels, min(tolerance, 2 * most), allowed=min(allowed, most), against=against)
    noise = min(exported.max_abs_difference, MOST_LOWER * largest)
    return Parity(name, labels, noise, allowed=noise, against="it did at the export")


def _inputs(
    bundle: Bundle, reference: Reference, metadata: Metadata, data: str | Path | FeatureSet | None, batch_size: int
) -> Iterator[Batch]:
    """Those of the reference's inputs that ``data``, or the bundle itself, holds."""
    if data is None:
        stored = [*reference.inputs]
        for start in range(0, len(stored), batch_size):
            rows = stored[start : start + batch_size]
            values = np.stack([reference.inputs[row] for row in rows])
            yield Batch(values, np.zeros(len(rows), np.int64), [reference.ids[row] for row in rows])
        return
    if metadata.head_only:
        held_out: HeldOut = held_out_features(data)
    elif isinstance(data, FeatureSet):
        raise InputError("--data: a feature set verifies a head alone, name images for a classifier")
    else:
        held_out = held_out_images(data, bundle.manifest)
    known = set(reference.ids)
    some = held_out.only([row for row, sample in enumerate(held_out.ids) if sample in known])
    yield from some.for_classifier(metadata).batches(batch_size)


def _compare(
    name: str,
    parity: Parity,
    ids: list[str],
    expected: Outputs,
    inputs: Array,
    model: Model,
    sizes: tuple[int, int],
) -> None:
    parity.add(ids, expected, run_file(name, model, inputs))
    if len(inputs) == 1 and not model.metadata.encoded:  # a file must tell two inputs apart: what it says of one alone
        other = made_up_inputs(inputs)[:1]
        inputs, expected = np.concatenate([inputs, other]), expected.joined(run_file(name, model, other))
    for rows in batches_of(model, inputs, *sizes):
        parity.add_batch_size(expected.rows(rows), run_file(name, model, inputs[rows]))
