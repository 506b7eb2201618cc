"""Results folders and zoos in YAML: a damaged one is read as another, or refused in one line."""

import sys
from pathlib import Path

import yaml
from harness import Target

sys.path.append(str(Path(__file__).parents[1] / "evaluate" / "report"))
from made_up_results import CLASSES, FEW, made_up_results

from headsmith.evaluate import compare, load_results
from headsmith.evaluate.report.report import render
from headsmith.evaluate.results.table import read_table
from headsmith.evaluate.zoo.manifest import read_manifest

RECIPE = {"resize_mode": "exact", "resize_size": 8, "crop_size": 8, "interpolation": "bilinear", "scale": 1}
PUBLISHED = {"top1": 70.5, "top5": 90, "source": "a paper"}


def results(folder: Path) -> Path:
    path = folder / "results"
    made_up_results(path, FEW, class_names=CLASSES, n=60, groups=["fog", "snow"] * 30)
    (path / ".lock").unlink(missing_ok=True)
    return path


def read_results(path: Path) -> object:
    """All that is read of a folder: its records, what is derived from them for people, and its table."""
    found = load_results(path)
    names = [result.model for result in found]
    both = compare(names[0], names[-1], results=path) if len(names) > 1 else None
    page = render(found) if names else ""
    answers = [found.predictions(result.key) for result in found]
    return (
        found.data,
        list(found.models),
        list(found.failed),
        both,
        len(page),
        answers,
        read_table(path / "results.csv"),
    )


def zoo(folder: Path) -> Path:
    rows = [
        {"id": "a", "source": "a.onnx", "preprocessing": RECIPE, "labels": ["x", "y"], "background": 0},
        {"id": "b", "source": "timm:resnet18", "published": PUBLISHED, "sha256": "0" * 64},
    ]
    path = folder / "zoo.yaml"
    path.write_text(yaml.safe_dump({"models": rows, "package": "onnx"}))
    return path


def test_results(fuzz):
    fuzz(Target("results", results, read_results, change_is_seen=False, count=100))


def test_zoos(fuzz):
    fuzz(Target("zoos", zoo, read_manifest, change_is_seen=False))
