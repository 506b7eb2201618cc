"""What a benchmark of several backbones costs beside its stages run one by one: python -m benchmarks.zoo.

Small networks of timm with seeded weights, on JPEG files of 500 x 375 pixels: accuracies mean nothing, times do. The
stages are `headsmith extract`, `sweep`, `export` and `evaluate`: as commands, each of which imports torch anew, and as
functions in one process that is warm. The benchmark too is run as the command, which takes as many processes as it
sees fit, and as the function in one process. CPU seconds are those of all processes, user and system.
"""

import argparse
import contextlib
import io
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import timm
import torch
import yaml
from PIL import Image

from headsmith.evaluate import evaluate_classifiers
from headsmith.evaluate.benchmark import benchmark, benchmarking
from headsmith.export import export_classifier
from headsmith.trainer import extract
from headsmith.trainer.sweep import sweep

ARCHITECTURES = ("test_resnet", "test_byobnet", "test_efficientnet", "test_convnext", "test_vit2")
STAGES = ("extract", "sweep", "export", "evaluate")
WHOLE, CPU = "all", "CPU"
GRID = {"loss": "softmax", "learning_rate": [1e-3, 1e-2], "epochs": 10}
Seconds = dict[str, float]
Backbone = dict[str, str]


def draw(folder: Path, classes: int, images: int) -> None:
    random = np.random.default_rng(0)
    for label in range(classes):
        (folder / f"{label:03d}").mkdir(parents=True)
        colour = random.integers(40, 216, 3)
        for number in range(images):
            small = np.clip(colour + random.integers(-60, 60, (47, 63, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(small).resize((500, 375)).save(folder / f"{label:03d}" / f"{number:03d}.jpg")


def rows(folder: Path, count: int) -> list[Backbone]:
    found = []
    for number in range(count):
        name = ARCHITECTURES[number % len(ARCHITECTURES)]
        torch.manual_seed(number)
        torch.save(timm.create_model(name).state_dict(), folder / f"{number}.pth")
        found.append({"backbone": f"timm:{name}", "checkpoint": f"{number}.pth", "name": f"{name}-{number}"})
    return found


@contextlib.contextmanager
def timed(seconds: Seconds, name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start


def in_all(run: Callable[[Seconds], None]) -> Seconds:
    """Seconds of each stage, and of the whole in wall and CPU time."""
    seconds, before = dict.fromkeys(STAGES, 0.0), _cpu()
    with timed(seconds, WHOLE):
        run(seconds)
    return seconds | {CPU: _cpu() - before}


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def commands(images: Path, folder: Path, backbones: list[Backbone], out: Path, seconds: Seconds) -> None:
    for row in backbones:
        own, weights = out / row["name"], str(folder / row["checkpoint"])
        words = {
            "extract": [images, "--backbone", row["backbone"], "--checkpoint", weights, "--out", own / "features"],
            "sweep": [own / "features", "--config", folder / "grid.yaml", "--out", own / "sweep"],
            "export": [own / "sweep" / "best", "--out", own / "bundle"],
            "evaluate": [own / "bundle", "--data", images, "--out", own / "results"],
        }
        for stage in STAGES:
            with timed(seconds, stage):
                command(stage, *words[stage])


def command(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "headsmith", *map(str, words)], check=True, capture_output=True)  # noqa: S603


def functions(images: Path, folder: Path, backbones: list[Backbone], out: Path, seconds: Seconds) -> None:
    for row in backbones:
        own, checkpoint = out / row["name"], folder / row["checkpoint"]
        with timed(seconds, "extract"):
            features = extract(images, out=own / "features", backbone=row["backbone"], checkpoint=checkpoint)
        with timed(seconds, "sweep"):
            found = sweep(features, config=GRID, out=own / "sweep")
        with timed(seconds, "export"):
            bundle = export_classifier(found.best, out=own / "bundle")
        with timed(seconds, "evaluate"):
            evaluate_classifiers(bundle, data=images, out=own / "results")


def one_process(images: Path, folder: Path, out: Path, seconds: Seconds) -> None:
    """The benchmark as a function; what is left of its time is the opening of the images, and the table."""
    measure = benchmarking.measure

    def measured(*given: object) -> object:
        with timed(seconds, "evaluate"):
            return measure(*given)

    with mock.patch.object(benchmarking, "measure", measured):
        found = benchmark(images, config=folder / "zoo.yaml", out=out, jobs=1)
    for stage in STAGES[:-1]:
        seconds[stage] = sum(row.seconds.get(stage, 0.0) for row in found.rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbones", type=int, default=10)
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--images", type=int, default=100, help="a class")
    parser.add_argument("--jobs", type=int, help="of the command; left out: it decides")
    parser.add_argument("--no-commands", action="store_true", help="leave out the stages as commands, which take long")
    asked = parser.parse_args()
    jobs = [] if asked.jobs is None else ["--jobs", asked.jobs]
    with tempfile.TemporaryDirectory() as made, contextlib.redirect_stderr(io.StringIO()):
        folder = Path(made)
        images = folder / "images"
        draw(images, asked.classes, asked.images)
        backbones = rows(folder, asked.backbones)
        (folder / "grid.yaml").write_text(yaml.safe_dump(GRID))
        (folder / "zoo.yaml").write_text(yaml.safe_dump({"backbones": backbones, "sweep": "grid.yaml", "keep": "all"}))
        functions(images, folder, backbones[:1], folder / "warm", {})
        table = {
            "one by one, commands": None
            if asked.no_commands
            else in_all(lambda seconds: commands(images, folder, backbones, folder / "apart", seconds)),
            "one by one, functions": in_all(
                lambda seconds: functions(images, folder, backbones, folder / "called", seconds)
            ),
            "benchmark, command": in_all(
                lambda _: command(
                    "benchmark", images, "--config", folder / "zoo.yaml", "--out", folder / "together", *jobs
                )
            ),
            "benchmark, one process": in_all(lambda seconds: one_process(images, folder, folder / "alone", seconds)),
        }
    show({name: seconds for name, seconds in table.items() if seconds is not None}, asked.backbones)


def show(table: dict[str, Seconds], backbones: int) -> None:
    columns = (*STAGES, WHOLE, CPU)
    print(f"| s | {' | '.join(columns)} |\n{'| --- ' * (len(columns) + 1)}|")
    for name, seconds in table.items():
        figures = (f"{seconds[column]:.1f}" if seconds[column] else "" for column in columns)
        print(f"| {name} | {' | '.join(figures)} |")
    for name, other in (
        ("benchmark, command", "one by one, commands"),
        ("benchmark, command", "one by one, functions"),
        ("benchmark, one process", "one by one, functions"),
    ):
        if other in table:
            wall, cpu = (table[name][column] / table[other][column] for column in (WHOLE, CPU))
            print(f"{name}, against {other}: {wall:.2f} x the time, {cpu:.2f} x the CPU time")
    alone = table["benchmark, one process"]
    beside = (alone[WHOLE] - sum(alone[stage] for stage in STAGES)) / backbones
    print(f"a row takes {beside:.2f} s beside its stages (of the benchmark in one process)")


if __name__ == "__main__":
    main()
