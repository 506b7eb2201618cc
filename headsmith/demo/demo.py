"""The demo's way from fonts to two measured classifiers."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from ..core.progress import stage
from ..evaluate import EvalResult, evaluate_classifiers
from ..export import Bundle, export_classifier
from ..metrics.proportions import Share
from ..show import console
from ..trainer import FeatureSet, Run, TrainConfig, extract, train
from .glyphs import LARGEST, draw_glyphs
from .picture import draw_picture

IMAGE_SIZE = 96
EPOCHS, STEPS = 24, 400  # the more of both
QUICK = 100
LOSSES = ("softmax", "lapsum")
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Contender:
    """One loss of the demo: its runs, one a seed, and the first one's file and measurement."""

    name: str
    runs: Sequence[Run]
    bundle: Bundle
    result: EvalResult


def run_demo(out: str | Path, *, classes: int = LARGEST) -> list[Contender]:
    """Draw glyphs, extract features, train heads by two losses with three seeds, export and measure the first of each.

    Args:
        out: Folder for everything. Glyphs, features, heads and files that it holds already are used again.
        classes: How many characters.

    Returns:
        Both losses, as they are in the table.

    Raises:
        InputError: The extras ``demo`` and ``lite0`` are not installed, or ``classes`` is out of range.
    """
    out = Path(out) / str(classes)
    glyphs = draw_glyphs(out / "glyphs", classes)
    features = extract(glyphs, backbone="lite0", image_size=IMAGE_SIZE, out=out / "features")
    contenders = [_contend(name, features, out) for name in LOSSES]
    console.print(_table(contenders), soft_wrap=False)
    for contender in contenders:
        console.print(f"{contender.name}, heads of {len(SEEDS)} seeds: {_of_seeds(contender.runs)}")
    picture = draw_picture(contenders[0].bundle, contenders[1].bundle, glyphs / "test", out / "demo.png")
    console.print(f"top-5 of both heads on unseen glyphs: {picture}")
    return contenders


def _contend(name: str, features: FeatureSet, out: Path) -> Contender:
    runs = [_train(name, seed, features, out / "runs" / f"{name}-{seed}") for seed in SEEDS]
    bundle = _export(runs[0], out / "bundles" / name)
    results = evaluate_classifiers(bundle, data=str(out / "glyphs" / "test"), out=out / "results" / name)
    return Contender(name, runs, bundle, results[0])


def _train(name: str, seed: int, features: FeatureSet, path: Path) -> Run:
    """The run at ``path`` where it was trained on these features, else a new one."""
    if path.is_dir():
        run = Run.load(path)
        if run.record.features.fingerprint == features.fingerprint:
            return run
    steps = -(-features.manifest.splits["train"] // TrainConfig.batch_size)
    epochs = max(EPOCHS, -(-STEPS // steps))
    return train(features, preset="default", loss=name, epochs=epochs, seed=seed, out=path, overwrite=True)


def _export(run: Run, path: Path) -> Bundle:
    """The bundle at ``path`` where it holds this run's head, else a new one."""
    if path.is_dir():
        bundle = Bundle.load(path)
        if bundle.manifest.head.sha256 == run.record.head_sha256:
            return bundle
    with stage(f"Exporting {path}"):
        return export_classifier(run, formats=("onnx", "torchscript"), out=path, overwrite=True)


def _table(contenders: list[Contender]) -> Table:
    table = Table(title="Exported ONNX files on unseen faces, under onnxruntime")
    for heading in ("loss", "top-1 % (95 %)", "top-5 % (95 %)", "trained", "flips", "MB"):
        table.add_column(heading, no_wrap=True)
    for contender in contenders:
        result, files = contender.result, contender.bundle.manifest.files
        table.add_row(
            contender.name,
            _accuracy(result.top1),
            _accuracy(result.top5),
            f"{contender.runs[0].record.results.seconds:.1f} s",
            " + ".join(str(contender.bundle.manifest.parity[name].flips) for name in ("model.onnx", "model.ts")),
            f"{files['model.onnx'].bytes / 1e6:.1f}",
        )
    table.caption = (
        f"flips: of {contenders[0].result.n:,} held-out glyphs, how many model.onnx + model.ts answer otherwise than "
        "the Python module (best class or set of five best)"
    )
    return table


def _accuracy(share: Share | None) -> str:
    return "n/a" if share is None else f"{100 * share.value:.1f} ({100 * share.low:.1f}-{100 * share.high:.1f})"


def _of_seeds(runs: Sequence[Run]) -> str:
    """Mean and deviation of test top-1 and top-5."""
    tests = [run.record.results.test for run in runs]
    found = {name: [100 * getattr(test, name) for test in tests if test is not None] for name in ("top1", "top5")}
    return ", ".join(
        f"{name.replace('top', 'top-')} {statistics.fmean(values):.1f} ± {statistics.stdev(values):.1f} %"
        for name, values in found.items()
    )
