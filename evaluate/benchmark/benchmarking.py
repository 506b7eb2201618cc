"""From images and names of backbones to one leaderboard that says which classifier to deploy."""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from filelock import FileLock

from ...core.arguments import typed
from ...core.environment import pick_device, versions
from ...core.errors import InputError, keeping
from ...core.files import check_outside, make_folder
from ...core.full_disk import full_disk_behind, full_disk_message
from ...core.progress import Advance, progress
from ...core.records import read_record, write_record
from ...export.precision.gates import unseen_drop
from ...export.runtime import checked_threads
from ...models.onnx_session import require_provider
from ...trainer.features.images.image_set import ImageSet, open_images
from ...trainer.features.images.kept_crops import CropFolder
from ...trainer.features.images.samples import SPLITS, ImageSource
from ...trainer.settings_file import read_from
from ..zoo.manifest import ZooRow
from ..zoo.zoo_rows import expand, is_local
from .benchmark_record import BenchmarkRecord, BenchmarkRow
from .budget import in_order, promises
from .finished_benchmark import Benchmark
from .leaderboard import CSV, MARKDOWN, write_csv, write_markdown
from .leaderboard_rows import Table, table_of
from .measure_files import measure
from .options import ALL, BenchmarkOptions
from .plan import FULL, Entry, expanded, keys_of, read_config, units_of
from .stages import BUNDLES
from .trained_rows import DONE, TrainedRow, read_rows
from .work_sharing import Work
from .worker_process import jobs, with_processes

IMAGES, CROPS = "images.json", ".crops"


@dataclass(frozen=True)
class BenchmarkImages:
    """What a benchmark's folder belongs to: the arguments that open the images, and their fingerprint."""

    source: ImageSource
    fingerprint: str


@typed
def benchmark(
    images: str | Path,
    *,
    out: str | Path,
    backbones: str | Sequence[str] = (),
    config: str | Path | None = None,
    yes: bool = False,
    **settings: Annotated[Any, BenchmarkOptions],
) -> Benchmark:
    """Train heads on many backbones, export them, measure every file, and say which one to deploy.

    For each backbone features are extracted, a sweep is trained and its winner exported and proved, at each precision;
    then all files are measured on the test split. Validation makes all choices. What is there already is used again:
    after an interruption the same call goes on, and with one more backbone it does only that one. The same call in
    several processes shares the work. A backbone that fails stays in the table with its reason, and is tried again by
    the next call.

    Args:
        images: See `headsmith.extract`.
        out: The benchmark's folder, which belongs to these images; see `Benchmark` for what it holds.
        backbones: Names, patterns, lists and folders: see `expand_backbones`.
        config: A YAML file with ``backbones``, of each of which more may be said (`Entry`), and the settings.
        yes: Whether there may be more than 50 backbones.
        settings: The fields of `BenchmarkOptions`; those given here win over the file's.

    Returns:
        The benchmark.

    Raises:
        InputError: No backbone, an unknown one, a setting that means nothing, a provider that does not run here, or an
            ``out`` that holds a benchmark of other images.
    """
    began, out = time.time(), Path(out)
    read, said = ([], {}) if config is None else read_config(config)
    with read_from(config, said.keys() - settings.keys()):
        options = BenchmarkOptions(**(said | settings))
    names = [backbones] if isinstance(backbones, str) else backbones
    units = units_of(
        expanded([*(Entry(backbone=name) for name in names), *read], many=yes or options.budget is not None), options
    )
    also = _others(options)
    pick_device(options.device)
    checked_threads(options.threads)
    for provider in options.provider:
        require_provider(provider)
    check_outside(out, images)
    opened = open_images(images, image_column=options.image_column, label_column=options.label_column)
    _check_gate(opened, options)
    opened = opened.hashed()
    _begin(out, opened)
    opened = replace(opened, crops=CropFolder(out.absolute() / CROPS, opened.known))
    found = promises(out, opened, units, options) if options.budget is not None else {}
    units = in_order(units, found) if found else units
    keys = keys_of(units, opened.fingerprint, options.max_drop)
    work = with_processes(Work(out.absolute(), opened, units, options, began, keys, found))
    with _keeping(out), _shown(work) as advance, jobs(work):
        work.do(lambda row: advance(1, row.name))
    with _keeping(out), FileLock(out / ".table.lock"):
        finished = _finish(out, work, str(images), also)
        shutil.rmtree(out / CROPS, ignore_errors=True)
        return finished


def _others(options: BenchmarkOptions) -> list[ZooRow]:
    """The files of others; one that is not there would be told after all the work."""
    found = expand(options.also) if options.also else []
    for row in found:
        if is_local(row) and not (row.folder / row.source).exists():
            raise InputError(
                f"--also: {row.folder / row.source}: not found, expected a bundle or a model file; correct the path"
            )
    return [replace(row, option="--also") for row in found]


def _check_gate(images: ImageSet, options: BenchmarkOptions) -> None:
    """Refuse a gate that no lower precision can pass on so few validation images."""
    lower = set(options.precision) - {FULL}
    if lower and (unseen := unseen_drop(len(images.split("val")), options.max_drop)):
        raise InputError(unseen)


def _shown(work: Work) -> AbstractContextManager[Advance]:
    """How many files are known, of all."""
    files, missing = len(work.units) * len(work.options.precision), sum(len(work.missing(unit)) for unit in work.units)
    return progress("Benchmark", files, "files", done=files - missing)


def _begin(out: Path, images: ImageSet) -> None:
    """Make the folder, or check that it belongs to these images."""
    make_folder(out)
    own = BenchmarkImages(images.source, images.fingerprint)
    with FileLock(out / ".images.lock"):
        if not (out / IMAGES).exists():
            if any(not path.name.startswith(".") for path in out.iterdir()):
                raise InputError(f"{out}: exists and is not a benchmark; choose another `out`")
            write_record(out / IMAGES, own)
    found = read_record(out / IMAGES, BenchmarkImages, advice="run the benchmark with another `out`")
    if found.fingerprint != own.fingerprint:
        raise InputError(
            f"{out}: holds a benchmark of {found.source.source} ({found.fingerprint[:12]}), these images are "
            f"{own.source.source} ({own.fingerprint[:12]}), changed or others; choose another `out`"
        )


@contextmanager
def _keeping(out: Path) -> Iterator[None]:
    """Let what ends the block, an interruption or a full disk, say what is kept and that the same command goes on."""
    try:
        with keeping(lambda: _kept(out)):
            yield
    except Exception as error:
        full = full_disk_behind(error)
        if full is None:
            raise
        raise InputError(full_disk_message(full, _kept(out))) from error


def _kept(out: Path) -> str:
    done = sum(row.state == DONE for row in read_rows(out))
    files = f"{done} exported classifier{'s' * (done != 1)}"
    return f"{out} keeps {files} and what was begun; the same command goes on from there"


def _finish(path: Path, work: Work, data: str, also: Sequence[ZooRow]) -> Benchmark:
    """Measure all files, choose, and write what is said of them."""
    out, options = work.out, work.options
    trained = read_rows(out)
    taken = {row.name for row in trained}
    others = [replace(row, id=f"{row.id} (also)") if row.id in taken else row for row in also]
    measured = measure(out, data, trained, others, options, work.images.crops)
    table = table_of(out, trained, others, measured, options)
    found = Benchmark(path, _record(work, table))
    found.write()
    write_csv(out / CSV, found.rows)
    write_markdown(out / MARKDOWN, found.record)
    if options.keep != ALL:
        _remove_bundles(out, trained, found.rows)
    if all(row.top1 is None for row in found.rows):
        raise InputError(next((row.reason for row in found.rows if row.reason), "nothing was measured"))
    return found


def _record(work: Work, table: Table) -> BenchmarkRecord:
    return BenchmarkRecord(
        source=work.images.source,
        images=work.images.fingerprint,
        class_names=work.images.class_names,
        splits={name: sum(one.split == name for one in work.images.samples) for name in SPLITS},
        provider=work.options.provider[0].name,
        bounds=table.bounds,
        winner=table.winner,
        sentence=table.sentence,
        rows=table.rows,
        warnings=table.warnings,
        versions=versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _remove_bundles(out: Path, trained: Sequence[TrainedRow], rows: Sequence[BenchmarkRow]) -> None:
    """Leave the bundles of the winner and of those tied with it."""
    kept: Mapping[str, str] = {row.name: row.bundle for row in rows}
    for row in trained:
        if not kept.get(row.name):
            shutil.rmtree(out / BUNDLES / row.name, ignore_errors=True)
