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

from headsmith.core.environment import describe_device, pick_device, versions
from headsmith.core.files import write_json
from headsmith.metrics.paired import paired_counts
from headsmith.trainer.criterion import resolve
from headsmith.trainer.fitting import Fitted, fit_heads
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


def scores(fitted: Fitted) -> dict[str, Any]:
    """What is kept of a head."""
    return {
        "val": asdict(fitted.val),
        "test": asdict(fitted.test) if fitted.test else None,
        "epoch": fitted.best.epoch if fitted.best else None,
        "diverged": fitted.diverged,
    }


def measured(path: Path, trials: Sequence[Trial]) -> dict[str, Any]:
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
        found[group] = {"setting": trials.index(one), "heads": [scores(fitted) for fitted in own], "tests": tests}
    return {
        "classes": classes,
        "settings": [scores(heads[one]) for one in trials],
        "chosen": found,
        "seconds": round(time.monotonic() - started, 1),
    }


def _merit(fitted: Fitted) -> tuple[bool, float, float]:
    return not fitted.diverged, fitted.val.score, -fitted.val.loss


def fixed_setting(group: Sequence[int], others: Sequence[dict[str, Any]]) -> int:
    """The setting of a group that is best on other sets: by its mean validation score."""
    return max(group, key=lambda at: statistics.fmean(one["settings"][at]["val"]["score"] for one in others))


def tables(found: dict[str, dict[str, Any]], trials: Sequence[Trial]) -> list[Table]:
    """Test top-1 / top-5, tuned and by leave-one-out; and how often a group is better or worse beyond chance."""
    groups = list(dict.fromkeys(one.group for one in trials))
    tuned = Table(title=f"Tuned on validation: test top-1 / top-5 in %, means of {len(SEEDS)} seeds; * p < .05")
    left = Table(title="Fixed settings, chosen on the other sets: the same, one seed")
    wins = Table(title=f"Beside tuned {BASELINE}: sets with a higher mean, better or worse beyond chance (top-1/top-5)")
    for table in (tuned, left):
        for column in ("set", *groups):
            table.add_column(column)
    for column in ("group", "mean top-1", "mean top-5", "higher", "better", "worse", "fixed: top-1", "fixed: top-5"):
        wins.add_column(column)
    means: dict[str, list[tuple[float, ...]]] = {group: [] for group in groups}
    for name, own in found.items():
        cells, fixed = [], []
        for group in groups:
            one = own["chosen"][group]
            top1, top5 = (statistics.fmean(h["test"][k] for h in one["heads"]) for k in ("top1", "top5"))
            stars = ["*" if one["tests"][k]["p"] < 0.05 else "" for k in ("top1", "top5")]
            cells.append(f"{100 * top1:.1f}{stars[0]} / {100 * top5:.1f}{stars[1]}")
            others = [other for key, other in found.items() if key != name] or [own]
            at = fixed_setting([at for at, trial in enumerate(trials) if trial.group == group], others)
            test = own["settings"][at]["test"]
            fixed.append(f"{100 * test['top1']:.1f} / {100 * test['top5']:.1f}")
            means[group].append((top1, top5, test["top1"], test["top5"]))
        tuned.add_row(name, *cells)
        left.add_row(name, *fixed)
    for group in groups:
        columns = [100 * statistics.fmean(column) for column in zip(*means[group], strict=True)]
        pairs = list(zip(means[group], means[BASELINE], strict=True))
        higher = "/".join(str(sum(a[i] > b[i] for a, b in pairs)) for i in (0, 1))
        tests = [own["chosen"][group]["tests"] for own in found.values()]
        better = "/".join(str(sum(_significant(one[k]) > 0 for one in tests)) for k in ("top1", "top5"))
        worse = "/".join(str(sum(_significant(one[k]) < 0 for one in tests)) for k in ("top1", "top5"))
        wins.add_row(
            group, *(f"{x:.2f}" for x in columns[:2]), higher, better, worse, *(f"{x:.2f}" for x in columns[2:])
        )
    return [tuned, left, wins]


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
        found = measured(path, plan.trials)
        write_json(file, found | {"versions": versions(), "device": describe_device(torch.device(device))})
        console.print(f"{path.stem}: {len(plan.trials)} settings in {found['seconds']:.0f} s")
    read = {path.stem: json.loads(path.read_text()) for path in sorted(arguments.out.glob("*.json"))}
    for table in tables(read, plan.trials) if read else []:
        console.print(table)


if __name__ == "__main__":
    main()
