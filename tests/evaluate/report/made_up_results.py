"""A results folder as an evaluation writes it, from logits that are made up."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headsmith.core.coded_warnings import CodedWarning
from headsmith.evaluate.held_out_record import HeldOutRecord, HeldOutSource
from headsmith.evaluate.measuring.published import judge
from headsmith.evaluate.measuring.speed_figures import Latency, Speed
from headsmith.evaluate.metrics import (
    class_table,
    confused_pairs,
    reliability,
    score_rows,
    selective,
    summarize,
    summarize_groups,
)
from headsmith.evaluate.result import EvalResult, EvaluationSetup, FailedModel
from headsmith.evaluate.results import Predictions, ResultsFolder


@dataclass(frozen=True)
class Model:
    """A classifier that does not exist.

    Attributes:
        name: Its name.
        skill: How far the logit of the right class stands out, in deviations of the noise.
        heat: What its logits are multiplied by; the higher, the surer it says it is.
        latency: Milliseconds.
        megabytes: Of its file.
        published: Top-1 that somebody claims.
        warnings: Warnings.
    """

    name: str
    skill: float
    heat: float = 1.0
    latency: float = 5.0
    megabytes: float = 20.0
    published: float | None = None
    warnings: tuple[str, ...] = ()


MODELS = (
    Model("timm:convnext_tiny.in12k_ft_in1k", 4.9, 3.4, 41.0, 114.4, 0.862),
    Model("timm:efficientnet_b3.ra2_in1k", 4.85, 1.6, 38.5, 49.3),
    Model("timm:resnet50.a1_in1k", 4.6, 2.6, 25.1, 102.4, 0.80),
    Model("torchvision:resnet50/IMAGENET1K_V1", 4.5, 3.0, 24.8, 102.5, 0.84),
    Model("timm:mobilenetv3_large_100", 4.3, 2.4, 5.9, 21.9),
    Model("lite0", 4.27, 2.6, 7.2, 18.6),
    Model("bundles/photos", 4.1, 5.0, 7.3, 18.7),
    Model("squeezenet1.1-7.onnx", 3.7, 2.4, 4.1, 4.9, warnings=("another setup is better: bgr, scale 1 gives 74.2 %",)),
)

CLASSES = ["ant", "<script>alert(1)</script>", "cow & calf", 'dog "Rex"', "emu", "fox"]
FEW = (
    Model("best", 3.62, 3.0, 40.0, 100.0, published=0.9, warnings=("measured on a <b>small</b> set",)),
    Model("close", 3.35, 1.0, 20.0, 101.0, published=0.85),
    Model("far/<i>model</i>", 2.2, 2.0, 10.0, 10.0),
)


def made_up_results(
    path: Path,
    models: tuple[Model, ...] = MODELS,
    *,
    class_names: list[str] | None = None,
    n: int = 3000,
    source: dict[str, str] | None = None,
    ids: list[str] | None = None,
    labels: np.ndarray | None = None,
    groups: list[str] | None = None,
    failed: tuple[FailedModel, ...] = (),
    multi_label: bool = False,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Write a results folder, and give the logits ``(n, C)`` of each model.

    Classes 2i and 2i + 1 are alike, and how hard an image is is the same for all models.
    """
    random = np.random.default_rng(seed)
    class_names = class_names or [f"class {number:02d}" for number in range(10)]
    labels = random.integers(0, len(class_names), n) if labels is None else labels
    ids = ids or [f"{class_names[label]}/{row:05d}.jpg" for row, label in enumerate(labels)]
    shared = random.normal(size=(n, len(class_names)))
    hardness, rows = random.exponential(0.9, n), np.arange(n)
    data = HeldOutRecord(
        "made/up/val", "f" * 64, class_names, n, HeldOutSource(**(source or {"data": "made/up/val"})), []
    )
    folder, logits = ResultsFolder(path, data), {}
    for number, model in enumerate(models):
        found = 0.8 * shared + 0.6 * np.random.default_rng([1 + number, seed]).normal(size=shared.shape)
        found[rows, labels] += model.skill - hardness
        found[rows, labels ^ 1 if len(class_names) % 2 == 0 else labels] += 0.9
        logits[model.name] = (model.heat * found).astype(np.float32)
        predictions = Predictions(ids, score_rows(logits[model.name], labels, multi_label=multi_label), groups)
        folder.add(result(model, number, predictions, class_names), predictions)
    for one in failed:
        folder.fail([one])
    folder.rank()
    return logits


def result(model: Model, number: int, predictions: Predictions, class_names: list[str]) -> EvalResult:
    scores = predictions.scores
    summary = summarize(scores)
    setup = EvaluationSetup(
        file="model.onnx",
        bytes=int(model.megabytes * 1e6),
        parameters=int(model.megabytes * 1e6 / 4),
        image_size=224,
        crop_pct=0.875,
        interpolation="bicubic",
        preprocessing=None,
        provider="CPUExecutionProvider",
        provider_name="cpu",
        provider_options={},
        nodes={},
        threads=2,
        runtime="onnxruntime 1.31.0",
        device="cpu (2 threads)",
        batch_size=64,
        data="made/up/val",
        data_sha256="f" * 64,
        model_sha256=f"{number:064x}",
        labels_sha256="a" * 64,
        preprocessing_sha256="b" * 64,
        versions={"python": "3.11.9", "headsmith": "0.1.0", "onnxruntime": "1.31.0"},
        created="2026-01-02T03:04:05+00:00",
    )
    latency = Latency(model.latency, model.latency * 1.1, model.latency * 1.3, 100, model.latency * 0.9)
    speed = Speed(
        load_seconds=0.2,
        first_run_seconds=0.1,
        images_per_second=3000 / model.latency if model.latency else 0.0,
        images_per_second_overall=900 / model.latency if model.latency else 0.0,
        decoded_per_second=400.0,
        latency=latency if model.latency else None,
        throughput={1: 20.0},
        memory_bytes=500_000_000,
        gpu_bytes=None,
    )
    return EvalResult(
        key=2 * f"{number:08x}",
        model=model.name,
        source=model.name,
        labels=class_names,
        summary=summary,
        subset=None,
        groups=summarize_groups(scores, predictions.groups) if predictions.groups else {},
        classes=None if scores.multi_label else class_table(scores),
        confused=None if scores.multi_label else confused_pairs(scores, limit=100),
        reliability=reliability(scores.confidences, scores.correct()),
        selective=selective(scores.confidences, scores.correct()),
        speed=speed,
        setup=setup,
        verdict=judge(summary.top[1], model.published, None, "its authors") if model.published else None,
        against=None,
        warnings=[CodedWarning("made-up", text) for text in model.warnings],
        not_finite=0,
        unreadable=[],
        duplicates=0,
    )
