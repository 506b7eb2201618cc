"""What a benchmark of several backbones costs beside its stages run one by one: python -m benchmarks.zoo.

Ten small networks of timm with seeded weights, on JPEG files of 500 x 375 pixels: accuracies mean nothing, times do.
The stages are those of `headsmith extract`, `sweep`, `export` and `evaluate` in one process that is warm, so that no
import is counted.
"""

import argparse
import contextlib
import io
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import timm
import torch
import yaml
from PIL import Image

from headsmith.evaluate import evaluate_classifiers
from headsmith.evaluate.benchmark import benchmark
from headsmith.export import export_classifier
from headsmith.trainer import extract
from headsmith.trainer.sweep import sweep

ARCHITECTURES = ("test_resnet", "test_byobnet", "test_efficientnet", "test_convnext", "test_vit2")
STAGES = ("extract", "sweep", "export", "evaluate")
GRID = {"loss": "softmax", "learning_rate": [1e-3, 1e-2], "epochs": 10}


def draw(folder: Path, classes: int, images: int) -> None:
    random = np.random.default_rng(0)
    for label in range(classes):
        (folder / f"{label:03d}").mkdir(parents=True)
        colour = random.integers(40, 216, 3)
        for number in range(images):
            small = np.clip(colour + random.integers(-60, 60, (47, 63, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(small).resize((500, 375)).save(folder / f"{label:03d}" / f"{number:03d}.jpg")


def rows(folder: Path, count: int) -> list[dict[str, str]]:
    found = []
    for number in range(count):
        name = ARCHITECTURES[number % len(ARCHITECTURES)]
        torch.manual_seed(number)
        torch.save(timm.create_model(name).state_dict(), folder / f"{number}.pth")
        found.append({"backbone": f"timm:{name}", "checkpoint": f"{number}.pth", "name": f"{name}-{number}"})
    return found


def one_by_one(images: Path, folder: Path, backbones: list[dict[str, str]], out: Path) -> dict[str, float]:
    """Seconds of each stage, over all backbones."""
    seconds = dict.fromkeys(STAGES, 0.0)
    for row in backbones:
        own, checkpoint, begun = out / row["name"], folder / row["checkpoint"], [time.perf_counter()]
        features = extract(images, out=own / "features", backbone=row["backbone"], checkpoint=checkpoint)
        begun.append(time.perf_counter())
        found = sweep(features, config=GRID, out=own / "sweep")
        begun.append(time.perf_counter())
        bundle = export_classifier(found.best, out=own / "bundle")
        begun.append(time.perf_counter())
        evaluate_classifiers(bundle, data=images, out=own / "results")
        begun.append(time.perf_counter())
        for stage, (start, end) in zip(STAGES, pairwise(begun), strict=True):
            seconds[stage] += end - start
    return seconds


def together(images: Path, folder: Path, backbones: list[dict[str, str]], jobs: int) -> dict[str, float]:
    """The same of one benchmark; what is left, its last stage, is the evaluation and the table."""
    (folder / "grid.yaml").write_text(yaml.safe_dump(GRID))
    (folder / "zoo.yaml").write_text(yaml.safe_dump({"backbones": backbones, "sweep": "grid.yaml", "keep": "all"}))
    start = time.perf_counter()
    found = benchmark(images, config=folder / "zoo.yaml", out=folder / "together", jobs=jobs)
    seconds = {stage: sum(row.seconds.get(stage, 0.0) for row in found.rows) for stage in STAGES[:-1]}
    whole = time.perf_counter() - start
    return seconds | {STAGES[-1]: whole - sum(seconds.values()) if jobs == 1 else 0.0, "all": whole}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbones", type=int, default=10)
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--images", type=int, default=100, help="a class")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, contextlib.redirect_stderr(io.StringIO()):
        folder = Path(made)
        draw(folder / "images", asked.classes, asked.images)
        backbones = rows(folder, asked.backbones)
        one_by_one(folder / "images", folder, backbones[:1], folder / "warm")
        apart = one_by_one(folder / "images", folder, backbones, folder / "apart")
        found = together(folder / "images", folder, backbones, asked.jobs)
    apart["all"] = sum(apart.values())
    print(f"| s | {' | '.join(apart)} |\n{'| --- ' * (len(apart) + 1)}|")
    for name, seconds in (("one by one", apart), ("benchmark", found)):
        print(f"| {name} | {' | '.join(f'{seconds[stage]:.1f}' for stage in apart)} |")
    print(f"{found['all'] / apart['all']:.2f} x")


if __name__ == "__main__":
    main()
