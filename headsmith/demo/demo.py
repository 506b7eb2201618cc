"""The demo's way from fonts to two measured classifiers."""

from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from ..evaluate import EvalResult, evaluate_classifier
from ..export import Bundle, export_classifier
from ..show import console, interval, percent
from ..trainer import FeatureSet, Run, extract, train
from .glyphs import draw_glyphs
from .picture import draw_picture

IMAGE_SIZE = 96
FORMATS = ("onnx", "torchscript")
HEADS = {
    "softmax": {"p_k": (1.0,)},
    "neuralsort": {"p_k": (0.5, 0.0, 0.0, 0.0, 0.5)},
}


@dataclass(frozen=True)
class Contender:
    """One head of the demo, from its run to the measurement of its file."""

    name: str
    run: Run
    bundle: Bundle
    result: EvalResult


def run_demo(out: str | Path, *, classes: int | None = None, quick: bool = False) -> list[Contender]:
    """Draw glyphs, extract features, train two heads with the same budget, export both, measure both files.

    Args:
        out: Folder for everything. Glyphs and features that it holds already are used again.
        classes: How many characters; 1000, or 100 when ``quick``.
        quick: Fewer classes and epochs.

    Returns:
        Both heads, as they are in the table.

    Raises:
        InputError: The extras ``demo`` and ``lite0`` are not installed, or ``classes`` is out of range.
    """
    classes = classes or (100 if quick else 1000)
    out = Path(out) / str(classes)
    glyphs = draw_glyphs(out / "glyphs", classes)
    features = extract(glyphs, backbone="lite0", image_size=IMAGE_SIZE, out=out / "features")
    contenders = [_contend(name, features, out, epochs=10 if quick else 40) for name in HEADS]
    console.print(_table(contenders))
    picture = draw_picture(contenders[0].bundle, contenders[1].bundle, glyphs / "test", out / "demo.png")
    console.print(f"top-5 of both heads on unseen glyphs: {picture}")
    return contenders


def _contend(name: str, features: FeatureSet, out: Path, epochs: int) -> Contender:
    run = train(features, loss=name, epochs=epochs, out=out / "runs" / name, overwrite=True, **HEADS[name])
    bundle = export_classifier(run, formats=FORMATS, out=out / "bundles" / name, overwrite=True)
    result = evaluate_classifier(bundle, data=str(out / "glyphs" / "test"), out=out / "results" / name)
    return Contender(name, run, bundle, result)


def _table(contenders: list[Contender]) -> Table:
    table = Table(
        "loss", "top-1", "95 %", "top-5", "95 %", "training", "parity ONNX / TorchScript", "model.onnx",
        title="exported files on unseen faces, under onnxruntime",
    )  # fmt: skip
    for contender in contenders:
        result = contender.result
        table.add_row(
            contender.name,
            percent(result.top1),
            interval(result.top1_interval),
            percent(result.top5),
            interval(result.top5_interval),
            f"{contender.run.record['results']['seconds']:.1f} s",
            " / ".join(_parity(contender.bundle, name) for name in ("model.onnx", "model.ts")),
            f"{contender.bundle.manifest['files']['model.onnx']['bytes'] / 1e6:.1f} MB",
        )
    return table


def _parity(bundle: Bundle, file: str) -> str:
    """How many of the held-out images the file answers as the Python module does."""
    report = bundle.manifest["parity"][file]
    return f"{report['n'] - report['flips']:,} of {report['n']:,}"
