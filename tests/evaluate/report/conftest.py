from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from html_tree import Element, parse
from made_up_results import CLASSES, FEW, made_up_results

from headsmith.evaluate.report import write_report
from headsmith.evaluate.result import FailedModel


@dataclass(frozen=True)
class Made:
    """A results folder with the logits and labels that it was made from, and the page."""

    folder: Path
    page: Path
    tree: Element
    logits: dict[str, np.ndarray]
    labels: np.ndarray


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("results")
    labels = np.random.default_rng(1).integers(0, len(CLASSES), 600)
    failed = FailedModel("broken", "broken.onnx", "broken.onnx: <not> an ONNX file", "0" * 16)
    groups = ["night" if row % 3 else "day" for row in range(len(labels))]
    logits = made_up_results(folder, FEW, class_names=CLASSES, labels=labels, n=600, failed=(failed,), groups=groups)
    page = write_report(folder)
    return Made(folder, page, parse(page.read_text(encoding="utf-8")), logits, labels)
