"""The files of a benchmark under onnxruntime: one evaluation of all of them for each execution provider."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...export.bundle.manifest import MANIFEST, read_manifest
from ...export.runtime import checked_threads
from ...models.execution_provider import ExecutionProvider
from ...trainer.features.images.kept_crops import CropFolder
from ..evaluation import evaluate
from ..metrics.agreement import agreement
from ..options import EvaluationOptions
from ..result import EvalResult
from ..results import Results, load_results
from ..results.reading import DATA
from ..results.store import forget
from ..zoo.manifest import ZooRow
from .benchmark_record import ProviderFigures
from .options import BenchmarkOptions
from .stages import BUNDLES
from .trained_rows import DONE, TrainedRow

RESULTS = "results"
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Measured:
    """What the test split says of all rows.

    Attributes:
        results: Under the first provider; ``None`` where there was no file to measure.
        further: Under the others, by their names.
    """

    results: Results | None
    further: dict[str, Results]

    def of(self, name: str) -> EvalResult | None:
        """The result of a row."""
        return next((one for one in self.results or () if one.model == name), None)

    def reason(self, name: str) -> str:
        """Why a file could not be measured; empty where it was."""
        failed = self.results.failed if self.results else ()
        return next((one.error for one in failed if one.model == name), "")

    def correct(self, result: EvalResult) -> tuple[list[str], Array]:
        """The ids of the test images, and whether each is right."""
        if self.results is None:
            raise ValueError("nothing was measured")
        found = self.results.predictions(result.key)
        return found.ids, found.scores.correct()

    def elsewhere(self, name: str) -> dict[str, ProviderFigures]:
        """The figures of a row under further providers."""
        return {provider: self._figures(name, results) for provider, results in self.further.items()}

    def _figures(self, name: str, results: Results) -> ProviderFigures:
        first, other = self.of(name), next((one for one in results if one.model == name), None)
        if other is None:
            why = next((one.error for one in results.failed if one.model == name), "not measured there")
            return ProviderFigures(None, None, None, None, None, why)
        flips = None
        if first is not None and self.results is not None:
            one, two = self.results.predictions(first.key).scores, results.predictions(other.key).scores
            flips = agreement(one, two).different
        moved = None if other.beside_cpu is None else other.beside_cpu.largest
        return ProviderFigures(other.speed.latency, other.speed.images_per_second, other.top1, flips, moved)


def measure(
    out: Path,
    data: str,
    rows: Sequence[TrainedRow],
    also: Sequence[ZooRow],
    options: BenchmarkOptions,
    crops: CropFolder | None,
) -> Measured:
    """Measure every bundle that is there, and the files of others, on the test split.

    What was measured before under the same conditions is not measured again, nor what has no bundle any more.

    Args:
        out: The benchmark's folder.
        data: The images, as they were given.
        rows: All rows.
        also: Files of others.
        options: Of the benchmark.
        crops: What was decoded before.

    Raises:
        InputError: A provider that does not run here.
    """
    bundles = {row.name: out / BUNDLES / row.name for row in rows if row.state == DONE}
    own = [ZooRow(name, str(path)) for name, path in bundles.items() if (path / MANIFEST).is_file()]
    found = {
        provider.name: _measure_under(provider, out / RESULTS / provider.name, data, [*own, *also], options, crops)
        for provider in options.provider
    }
    first, *others = found
    return Measured(found[first], {name: results for name in others if (results := found[name]) is not None})


def _measure_under(
    provider: ExecutionProvider,
    folder: Path,
    data: str,
    rows: Sequence[ZooRow],
    options: BenchmarkOptions,
    crops: CropFolder | None,
) -> Results | None:
    if (folder / DATA).is_file():
        forget(folder, _outdated(load_results(folder), rows))
    if not rows:
        return load_results(folder) if (folder / DATA).is_file() else None
    asked = EvaluationOptions(
        data=data,
        image_column=options.image_column,
        label_column=options.label_column,
        provider=(provider,),
        batch_size=options.batch_size,
        threads=checked_threads(options.threads),
        speed=options.speed,
    )
    return evaluate(rows, folder, asked, crops)


def _outdated(results: Results, rows: Sequence[ZooRow]) -> set[str]:
    """The keys of results on bundles that were made anew since."""
    made = {
        row.id: read_manifest(path / MANIFEST).created
        for row in rows
        if ((path := Path(row.source)) / MANIFEST).is_file()
    }
    return {one.key for one in results if one.setup.created < made.get(one.model, "")}
