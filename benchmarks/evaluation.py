"""Times what an evaluation adds to the runtime, on this machine.

python -m benchmarks.evaluation [--parts scoring,overhead,decoding,gpu] [--rows 1000000]
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnxruntime
import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from scipy.special import softmax
from sklearn.metrics import balanced_accuracy_score, log_loss, top_k_accuracy_score

from benchmarks import evaluation_cpu
from headsmith.core.cpus import usable_cpus
from headsmith.evaluate.metrics import (
    RowScores,
    Scorer,
    Summary,
    class_table,
    confused_pairs,
    reliability,
    selective,
    summarize,
    summarize_groups,
)
from headsmith.evaluate.metrics.row_scores import COLUMNS
from headsmith.evaluate.statistics import bootstrap_difference, paired_difference

CLASSES, BATCH, SLICE = 1000, 1000, 4_000


@dataclass(frozen=True)
class Row:
    """One line of the table: seconds for some predictions, and a value that was found."""

    what: str
    seconds: float
    rows: int
    found: str = ""


def timed(what: str, rows: int, work: Callable[[], object], show: Callable[..., str] = lambda _: "") -> Row:
    start = time.perf_counter()
    found = work()
    return Row(what, time.perf_counter() - start, rows, show(found))


def batch_of_logits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A batch whose label is the best class in about three rows of four."""
    random = np.random.default_rng(seed)
    logits = random.standard_normal((BATCH, CLASSES), dtype=np.float32)
    labels = random.integers(0, CLASSES, BATCH)
    logits[np.arange(BATCH), labels] += random.normal(4, 1.2, BATCH).astype(np.float32)
    return logits, labels


def scoring(rows: int) -> list[Row]:
    """All metrics and intervals of many predictions, a batch at a time; a few batches are made once and come again."""
    batches = [batch_of_logits(seed) for seed in range(8)]
    scorer = Scorer(CLASSES)

    def stream() -> RowScores:
        for number in range(rows // BATCH):
            scorer.add(*batches[number % len(batches)])
        return scorer.scores()

    def curves() -> None:
        for bins in ("width", "mass"):
            reliability(scores.confidences, right, equal=bins)
        selective(scores.confidences, right)

    table = [timed("row scores of the logits", rows, stream, lambda it: f"{megabytes(it):.0f} MB are kept")]
    scores = scorer.scores()
    right, other = scores.correct(), np.roll(scores.correct(), 1)
    groups = np.array(["fog", "noise", "snow"])[np.arange(rows) % 3]
    table += [
        timed("summary with intervals", rows, lambda: summarize(scores), figures),
        timed("summary of each of 3 groups", rows, lambda: summarize_groups(scores, groups)),
        timed("reliability, risk against coverage", rows, curves),
        timed("table of classes, confused pairs", rows, lambda: (class_table(scores), confused_pairs(scores))),
        timed("McNemar and Newcombe", rows, lambda: paired_difference(right, other), lambda it: f"p = {it.p:.2f}"),
        timed("paired bootstrap", rows, lambda: bootstrap_difference(right, other)),
    ]
    table.append(Row("all of it", sum(row.seconds for row in table), rows))
    return table + peers(batches)


def peers(batches: list[tuple[np.ndarray, np.ndarray]]) -> list[Row]:
    """A few of the same figures by scikit-learn, and by us, on a slice."""
    repeats = SLICE // BATCH
    logits = np.concatenate([batches[i % len(batches)][0] for i in range(repeats)])
    labels = np.concatenate([batches[i % len(batches)][1] for i in range(repeats)])
    classes = np.arange(CLASSES)

    def ours() -> Summary:
        scorer = Scorer(CLASSES)
        scorer.add(logits, labels)
        return summarize(scorer.scores())

    def theirs() -> str:
        top1, top5 = (top_k_accuracy_score(labels, logits, k=k, labels=classes) for k in (1, 5))
        loss = log_loss(labels, softmax(logits.astype(np.float64), axis=1), labels=classes)
        return f"{top1:.4f} {top5:.4f} {balanced_accuracy_score(labels, logits.argmax(1)):.4f} {loss:.4f}"

    return [
        timed("a slice: row scores and summary", SLICE, ours, figures),
        timed("a slice: the same four by scikit-learn", SLICE, theirs, str),
    ]


def figures(summary: Summary) -> str:
    top1, top5 = (summary.top[k].value for k in (1, 5))
    return f"{top1:.4f} {top5:.4f} {summary.mean_recall:.4f} {summary.nll:.4f}"


def megabytes(scores: RowScores) -> float:
    return sum(getattr(scores, name).nbytes for name in COLUMNS) / 1e6


def show_gpu() -> None:
    """Print each line as soon as it is measured, and the table of all at the end."""
    from .evaluation_gpu import BATCH, GpuRow, gpu

    device, runtime = torch.cuda.get_device_name(), f"onnxruntime {onnxruntime.__version__}, torch {torch.__version__}"
    table = Table("network", "", "what", "images/s", "", title=f"{device}, batches of {BATCH}, {runtime}")

    def report(row: GpuRow) -> None:
        cells = [row.network, row.precision, row.what, f"{row.rate:,.0f}" if row.rate else "", row.found]
        print(" | ".join(cells), flush=True)
        table.add_row(*map(escape, cells))

    gpu(report)
    Console(width=160).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="scoring")
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    asked = arguments.parts.split(",")
    if "gpu" in asked:
        show_gpu()
        asked.remove("gpu")
    if not asked:
        return
    parts = {
        "scoring": lambda: scoring(arguments.rows),
        "overhead": lambda: [Row(*row) for row in evaluation_cpu.overhead()],
        "decoding": lambda: [Row(*row) for row in evaluation_cpu.decoding()],
    }
    title = f"{arguments.rows:,} predictions of {CLASSES} classes, batches of {BATCH}, {usable_cpus()} CPUs"
    table = Table("what", "seconds", "us each", "found (figures: top-1, top-5, mean recall, NLL)", title=title)
    for part in asked:
        for row in parts[part]():
            each = row.seconds / row.rows * 1e6
            table.add_row(row.what, f"{row.seconds:.3f}", f"{each:.3f}", row.found)
    Console().print(table)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "y_pred contains classes not in y_true")
    main()
