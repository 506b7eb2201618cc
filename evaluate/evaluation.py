"""Measure classifiers as they are deployed: accuracy with its uncertainty, and speed."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

from ..core.arguments import typed
from ..core.errors import InputError, keeping
from ..core.files import check_outside
from ..core.settings import of_keywords
from ..export.bundle.bundle import Bundle
from ..export.bundle.hub import HUB, local_folder
from ..export.bundle.manifest import MANIFEST, Manifest, read_manifest
from ..export.held_out import HeldOutImages
from ..export.runtime import checked_threads
from ..models.execution_provider import AnyProvider
from ..models.onnx_session import require_provider
from ..trainer.features.images.kept_crops import CropFolder
from .held_out_record import HeldOutRecord
from .measuring.one_classifier import evaluate_one, is_timed
from .measuring.timing_in_turns import CHEAP, THOROUGH, Untimed, time_together
from .open_held_out import open_data, part_trained_on
from .options import KS, EvaluationOptions
from .result import EvalResult, FailedModel
from .results import Results, ResultsFolder, load_results
from .zoo import Candidate, find_candidates
from .zoo.manifest import ZooRow
from .zoo.zoo_rows import expand


@typed
def evaluate_classifiers(
    models: str | Path | Bundle | Sequence[str | Path],
    *,
    data: str | Path,
    out: str | Path | None = None,
    truth: str | Path | None = None,
    class_ids: str | Path | None = None,
    group_column: str | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    preprocessing: str | Path | None = None,
    labels: str | Path | None = None,
    background: int | None = None,
    output: str | None = None,
    checkpoint: str | Path | None = None,
    k: Sequence[int] = KS,
    provider: AnyProvider | Sequence[AnyProvider] = ("cpu",),
    allow_fallback: bool = False,
    batch_size: int = 64,
    threads: int | None = None,
    speed: bool = False,
    against: str | None = None,
    save_logits: bool = False,
    strict: bool = False,
) -> Results:
    """Run classifiers on one held-out set and score their logits.

    Classes are matched by name. Equal logits are ordered by class index, the lower first; a row with NaN is wrong.
    Decoding runs in threads beside the session and is not counted in its images a second. What was measured before
    with the same inputs, options and versions is not run again; a classifier that fails stays in the table, with why.

    Args:
        models: One or several of: a bundle; an ONNX, TorchScript or ``.pt2`` file; a folder of such; ``lite0``;
            ``timm:NAME``, ``torchvision:NAME[/WEIGHTS]``, also as patterns; ``hf:USER/REPO``; a zoo in YAML, or
            ``zoo:NAME``: see `headsmith.evaluate.zoo.find_candidates`.
        data: Held-out images: a folder of class folders, a source with a test split, or the training's own source,
            of which the held-out part is taken; with ``truth`` a folder of images. For heads alone: a feature set.
        out: Results folder, see `headsmith.evaluate.results`; ``None`` is ``results/DATA`` in the working directory.
        truth: The right classes, where no folders say them: a CSV file, a text file with a line an image in the order
            of file names, or a JSON list with the right classes of each (ReaL).
        class_ids: What numbered classes are: a file with ``id name`` lines, the devkit's ``meta.mat``, or
            ``imagenet-1k`` for places among its sorted WordNet ids (ImageNet-V2).
        group_column: Column of ``truth``, or of a `datasets` source, with the group of each image.
        image_column: Image column of a `datasets` source.
        label_column: Label column of a `datasets` source.
        preprocessing: YAML file with the recipe of ONNX files that do not say it.
        labels: Of such files: a text file with a name a line, or timm's name of a set, as ``imagenet-1k``.
        background: Of such files: the output that is no class.
        output: Of such files: the output with the scores, where several could be.
        checkpoint: Local weights of a ``timm:`` or ``torchvision:`` network.
        k: The k of the top-k accuracies.
        provider: What runs them, see `headsmith.export.open_model`; of several each gives a row. It runs, and runs
            every node, or it is an error.
        allow_fallback: Let the CPU run nodes that the provider cannot; they are counted.
        batch_size: Inputs a run.
        threads: Threads of the runtime; ``None`` takes ``OMP_NUM_THREADS``, else the CPUs of this process.
        speed: Time latency for longer, and throughput at batch sizes 1 to 256; models take turns.
        against: ``torch`` runs every classifier there too, and counts flips: a bundle's TorchScript or ``.pt2`` file,
            or the module that ``timm:`` or ``torchvision:`` gives.
        save_logits: Keep ``logits.npz`` beside the predictions: ``logits`` float32 ``(N, C)`` in the order of the
            result's ``labels``, ``labels``, ``ids``.
        strict: Stop at an unreadable image instead of leaving it out.

    Returns:
        All that the results folder holds now.

    Raises:
        InputError: A source that names nothing, data without a held-out image, a provider that does not run here, or
            not one classifier could be measured.
    """
    threads = checked_threads(threads)
    options = of_keywords(EvaluationOptions, locals())
    sources = [models] if isinstance(models, str | Path | Bundle) else list(models)
    rows = expand([source.source if isinstance(source, Bundle) else source for source in sources])
    return evaluate(rows, _folder(data) if out is None else Path(out), options)


def evaluate(rows: Sequence[ZooRow], out: Path, options: EvaluationOptions, crops: CropFolder | None = None) -> Results:
    """`evaluate_classifiers` with its options as one, and with crops that may have been kept of the images."""
    check_outside(out, options.data)
    for provider in options.provider:
        if not provider.is_cpu:
            require_provider(provider)
    candidates = find_candidates(rows, **options.files)
    source = replace(options.source, part=part_trained_on(options.source, _manifests(rows)))
    held_out = open_data(source)
    if crops is not None and isinstance(held_out, HeldOutImages):
        held_out = replace(held_out, images=crops.shared_with(held_out.images))
    record = HeldOutRecord(
        name=held_out.name,
        fingerprint=held_out.fingerprint,
        class_names=held_out.class_names,
        n=len(held_out),
        source=source,
        warnings=list(held_out.warnings),
    )
    folder = ResultsFolder(out, record)
    if folder.begun:
        load_results(folder.path)  # what an older version wrote is refused before anything runs
    found, untimed = list[EvalResult | FailedModel](), list[Untimed]()
    with keeping(lambda: _kept(found, folder)):
        for provider, candidate in product(options.provider, candidates):
            one = evaluate_one(candidate, provider, held_out, folder, options)
            found.append(one)
            if isinstance(one, EvalResult) and isinstance(candidate, Candidate) and not is_timed(one, options):
                untimed.append(Untimed(candidate, provider, one))
    failed = [one for one in found if isinstance(one, FailedModel)]
    if len(failed) < len(found) or folder.begun:
        folder.fail(failed)
        folder.rank()
    with keeping(lambda: _kept(found, folder)):
        time_together(untimed, held_out, folder, THOROUGH if options.speed else CHEAP, options.batch_size)
    if len(failed) == len(found):
        raise InputError(failed[0].error)
    return load_results(folder.path)


def _kept(found: Sequence[EvalResult | FailedModel], folder: ResultsFolder) -> str:
    count = sum(isinstance(one, EvalResult) for one in found)
    return f"{folder.path} keeps the results of {count} classifiers; the same command goes on from there" * bool(count)


def _manifests(rows: Sequence[ZooRow]) -> list[Manifest]:
    """The manifests of the bundles among them; what is wrong with one is told when its turn has come."""
    found = []
    for row in rows:
        with suppress(InputError):
            folder = local_folder(row.source) if row.source.startswith(HUB) else row.folder / row.source
            if (folder / MANIFEST).is_file():
                found.append(read_manifest(folder / MANIFEST))
    return found


def _folder(data: str | Path) -> Path:
    """``results/photos-test`` for ``photos/test``, wherever that is."""
    parts = [part for part in Path(data).parts if part not in ("/", ".", "..", "~")]
    return Path("results", "-".join(parts[-2:]))
