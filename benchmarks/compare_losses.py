"""Every group of losses on real sets, tuned and by fixed settings: python -m benchmarks.compare_losses.

    python -m benchmarks.real_sets --out build/real_sets
    python -m benchmarks.compare_losses --sets build/real_sets --out build/losses

Of each set and each group of `compare_losses.yaml`, validation chooses one setting with one seed; it is trained with
five. Leave-one-out: a group's fixed setting is the one with the best mean validation score on the other sets. A set
that is measured is kept in `OUT/SET.json`; `--table` prints what is there.
"""

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from rich.console import Console
from rich.table import Table
from torch.nn.functional import cross_entropy

from headsmith.core.environment import describe_device, pick_device, versions
from headsmith.core.files import write_json
from headsmith.export.temperature import fit_temperature
from headsmith.metrics.paired import paired_counts
from headsmith.trainer.fitting import Fitted, fit_heads
from headsmith.trainer.resolved_settings import resolve
from headsmith.trainer.sweep.bank_grouping import banks_of
from headsmith.trainer.sweep.grid import Trial, read_plan

Splits = dict[str, tuple[torch.Tensor, torch.Tensor]]
STEPS, LEAST_EPOCHS = 2000, 30
SEEDS = range(5)
BASELINE = "cross-entropy"


def read_set(path: Path) -> tuple[Splits, int]:
    """The splits of a compact set, its features divided by their root mean square in training; and its classes."""
    with np.load(path) as arrays:
        features = {name: arrays[f"{name}_features"].astype(np.float32) for name in ("train", "val", "test")}
        labels = {name: arrays[f"{name}_labels"].astype(np.int64) for name in features}
    scale = np.sqrt(np.square(features["train"], dtype=np.float64).mean())
    rows = {
        name: (torch.from_numpy((x / scale).astype(np.float16)), torch.from_numpy(labels[name]))
        for name, x in features.items()
    }
    return rows, int(labels["train"].max()) + 1


def fit(trials: Sequence[Trial], rows: Splits, classes: int) -> dict[Trial, Fitted]:
    """Train heads, those side by side that may be."""
    epochs = max(LEAST_EPOCHS, -(-STEPS // -(-len(rows["train"][1]) // trials[0].config.batch_size)))
    asked = {one: Trial(one.group, replace(one.config, epochs=epochs, patience=epochs)) for one in trials}
    resolved = {one: Trial(own.group, resolve(own.config, classes, rows["train"][0])) for one, own in asked.items()}
    found: dict[Trial, Fitted] = {}
    for bank in banks_of(list(dict.fromkeys(resolved.values())), classes, rows["train"][0].shape[1]):
        found |= zip(bank, fit_heads(rows, classes, [one.config for one in bank]), strict=True)
    return {one: found[own] for one, own in resolved.items()}


def scores(fitted: Fitted, rows: Splits, device: str) -> dict[str, Any]:
    """What is kept of a head; the NLL is that of test, by the temperature that is best on validation."""
    head = fitted.head.to(device)
    with torch.inference_mode():
        logits = {split: head(rows[split][0].to(device).float()) for split in ("val", "test")}
    labels = {split: rows[split][1].to(device) for split in logits}
    temperature = fit_temperature(logits["val"], labels["val"])
    return {
        "nll": cross_entropy(logits["test"] / temperature, labels["test"]).item(),
        "val": asdict(fitted.val),
        "test": asdict(fitted.test) if fitted.test else None,
        "epoch": fitted.best.epoch if fitted.best else None,
        "diverged": fitted.diverged,
    }


def measured(path: Path, trials: Sequence[Trial], device: str) -> dict[str, Any]:
    """All that is kept of a set."""
    started = time.monotonic()
    rows, classes = read_set(path)
    heads = fit(trials, rows, classes)
    groups = dict.fromkeys(one.group for one in trials)
    chosen = {
        group: max((one for one in trials if one.group == group), key=lambda one: _merit(heads[one]))
        for group in groups
    }
    again = [Trial(one.group, replace(one.config, seed=seed)) for one in chosen.values() for seed in SEEDS[1:]]
    repeated = fit(again, rows, classes)
    found: dict[str, Any] = {}
    baseline = heads[chosen[BASELINE]].test_ranks.numpy()
    for group, one in chosen.items():
        own = [heads[one], *(fitted for trial, fitted in repeated.items() if trial.group == group)]
        tests = {f"top{k}": asdict(paired_counts(heads[one].test_ranks.numpy(), baseline, k)) for k in (1, 5)}
        found[group] = {
            "setting": trials.index(one),
            "heads": [scores(fitted, rows, device) for fitted in own],
            "tests": tests,
        }
    return {
        "classes": classes,
        "settings": [scores(heads[one], rows, device) for one in trials],
        "chosen": found,
        "seconds": round(time.monotonic() - started, 1),
    }


def _merit(fitted: Fitted) -> tuple[bool, float, float]:
    return not fitted.diverged, fitted.val.score, -fitted.val.loss


def fixed_setting(group: Sequence[int], others: Sequence[dict[str, Any]]) -> int:
    """The setting of a group that is best on other sets: by its mean validation score."""
    return max(group, key=lambda at: statistics.fmean(one["settings"][at]["val"]["score"] for one in others))


def tables(found: dict[str, dict[str, Any]], trials: Sequence[Trial]) -> list[Table]:
    """Test top-1 / top-5 / NLL, tuned and by leave-one-out; and how often a group is better or worse beyond chance."""
    groups = list(dict.fromkeys(one.group for one in trials))
    columns = "test top-1 / top-5 in % / NLL"
    tuned = Table(title=f"Tuned on validation: {columns}, means of {len(SEEDS)} seeds; * p < .05")
    left = Table(title=f"Fixed settings, chosen on the other sets: {columns}, one seed")
    wins = Table(title=f"Beside tuned {BASELINE}: sets with a better mean, better or worse beyond chance (top-1/top-5)")
    for table in (tuned, left):
        for column in ("set", *groups):
            table.add_column(column)
    for column in ("group", "mean", "better mean", "better", "worse", "fixed: mean"):
        wins.add_column(column)
    means: dict[str, list[tuple[float, ...]]] = {group: [] for group in groups}
    fixed_means: dict[str, list[tuple[float, ...]]] = {group: [] for group in groups}
    for name, own in found.items():
        cells, fixed = [], []
        for group in groups:
            one = own["chosen"][group]
            means[group].append(tuple(map(statistics.fmean, zip(*map(_figures, one["heads"]), strict=True))))
            stars = ["*" if one["tests"][k]["p"] < 0.05 else "" for k in ("top1", "top5")]
            cells.append(_cell(means[group][-1], stars))
            others = [other for key, other in found.items() if key != name] or [own]
            at = fixed_setting([at for at, trial in enumerate(trials) if trial.group == group], others)
            fixed_means[group].append(_figures(own["settings"][at]))
            fixed.append(_cell(fixed_means[group][-1]))
        tuned.add_row(name, *cells)
        left.add_row(name, *fixed)
    for group in groups:
        mean, fixed_mean = (
            _cell([statistics.fmean(column) for column in zip(*of[group], strict=True)], digits=2)
            for of in (means, fixed_means)
        )
        pairs = list(zip(means[group], means[BASELINE], strict=True))
        higher = "/".join(str(sum(sign * (a[i] - b[i]) > 0 for a, b in pairs)) for i, sign in enumerate((1, 1, -1)))
        tests = [own["chosen"][group]["tests"] for own in found.values()]
        better = "/".join(str(sum(_significant(one[k]) > 0 for one in tests)) for k in ("top1", "top5"))
        worse = "/".join(str(sum(_significant(one[k]) < 0 for one in tests)) for k in ("top1", "top5"))
        wins.add_row(group, mean, higher, better, worse, fixed_mean)
    return [tuned, left, wins]


def _figures(head: dict[str, Any]) -> tuple[float, float, float]:
    return 100 * head["test"]["top1"], 100 * head["test"]["top5"], head["nll"]


def _cell(figures: Sequence[float], stars: Sequence[str] = ("", ""), digits: int = 1) -> str:
    top1, top5, nll = figures
    return f"{top1:.{digits}f}{stars[0]} / {top5:.{digits}f}{stars[1]} / {nll:.2f}"


def _significant(test: dict[str, Any]) -> int:
    return 0 if test["p"] >= 0.05 else 1 if test["only_first"] > test["only_second"] else -1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=Path, default=Path("build/real_sets"))
    parser.add_argument("--out", type=Path, default=Path("build/losses"))
    parser.add_argument("--only", help="sets, with commas between them")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--table", action="store_true", help="only print what is measured")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    device = str(pick_device(arguments.device))
    plan = read_plan(yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text()), None, device)
    console = Console(width=250)
    for path in [] if arguments.table else sorted(arguments.sets.rglob("*.npz")):
        file = arguments.out / f"{path.stem}.json"
        if file.is_file() or (arguments.only and path.stem not in arguments.only.split(",")):
            continue
        found = measured(path, plan.trials, device)
        write_json(file, found | {"versions": versions(), "device": describe_device(torch.device(device))})
        console.print(f"{path.stem}: {len(plan.trials)} settings in {found['seconds']:.0f} s")
    read = {path.stem: json.loads(path.read_text()) for path in sorted(arguments.out.glob("*.json"))}
    for table in tables(read, plan.trials) if read else []:
        console.print(table)


if __name__ == "__main__":
    main()
