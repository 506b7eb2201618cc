"""What is said of the choice: equals, guesses, untrained rows, bounds and the budget."""

import csv
from dataclasses import replace
from io import StringIO
from itertools import permutations

import pytest
from rich.console import Console

from headsmith import show_benchmark as shown
from headsmith.core.coded_warnings import CodedWarning
from headsmith.evaluate.benchmark.benchmark_record import BenchmarkRecord, BenchmarkRow
from headsmith.evaluate.benchmark.decision import choose, excess
from headsmith.evaluate.benchmark.finished_benchmark import Benchmark
from headsmith.evaluate.benchmark.leaderboard import write_csv, write_markdown
from headsmith.evaluate.benchmark.verdict import doubts, headline, sentence
from headsmith.evaluate.measuring.speed_figures import Latency
from headsmith.metrics.proportions import wilson
from headsmith.trainer.features.images.samples import ImageSource

GUESS = CodedWarning("chance", "top-1, 33.3%, cannot be told from guessing")


def row(name, val, ms=5.0, mb=5.0, test=50, **more):
    return BenchmarkRow(
        name=name,
        val_top1=wilson(val, 100),
        top1=wilson(test, 100),
        latency=Latency(ms, ms, ms, 5, ms),
        file_mb=mb,
        **more,
    )


def pruned(name, promise):
    return BenchmarkRow(name=name, state="pruned", reason="would take about 9 s", promise=promise)


def finished(tmp_path, rows, bounds=None):
    bounds = bounds or {}
    winner = choose(rows, bounds)
    record = BenchmarkRecord(
        source=ImageSource("photos"),
        images="0" * 64,
        class_names=["a", "b"],
        splits={"test": 100},
        provider="cpu",
        bounds=bounds,
        winner=winner.name,
        sentence=sentence(winner, rows, bounds),
        rows=rows,
        warnings=doubts(winner, rows, bounds),
        versions={},
        created="2026-01-01T00:00:00+00:00",
    )
    return Benchmark(tmp_path, record)


@pytest.mark.parametrize(
    "rows",
    [
        [row("z", 33, ms=2.0), row("a", 33, ms=3.0, mb=1.0), row("worse", 32, ms=1.0)],
        [row("z", 33, mb=1.0), row("a", 33, mb=2.0), row("worse", 32, mb=0.5)],
        [row("z", 33), row("zz", 33, val_top5=wilson(90, 100)), row("worse", 32)],
    ],
    ids=["latency", "size", "name"],
)
def test_between_equals_decide_latency_then_size_then_name_in_any_order(rows):
    assert {choose(order, {}).name for order in permutations(rows)} == {"z"}
    assert sentence(choose(rows, {}), rows, {}).startswith(
        "deploy z, best of 3 but level with 1 other on validation (33.0 %), chosen for lower latency (then size, then "
        "name): right for"
    )


def test_one_that_is_best_alone_is_called_the_best():
    rows = [row("z", 33), row("a", 32)]
    assert sentence(choose(rows, {}), rows, {}).startswith("deploy z, the best of 2 on validation (33.0 %): right for")


def test_only_those_within_the_bounds_are_level():
    rows = [row("z", 33, ms=9.0), row("a", 33, ms=30.0), row("b", 33, ms=10.0)]
    rows = [replace(one, within=excess(one, {"latency": 20.0}) <= 1) for one in rows]
    said = sentence(choose(rows, {"latency": 20.0}), rows, {"latency": 20.0})
    assert said.startswith("deploy z, best of 2 of 3 that are within --latency 20 ms but level with 1 other on")


@pytest.mark.parametrize(
    ("warnings", "untrained", "said"),
    [
        ([GUESS], 20, ", no better than guessing on the test images: right"),
        ([], 33, ", no better than 3 nearest, without training (33.0 % on validation): right"),
        (
            [GUESS],
            40,
            ", no better than guessing on the test images nor than 3 nearest, without training (40.0 % on validation)",
        ),
        ([], 32, "(33.0 % on validation): right"),
    ],
)
def test_a_winner_that_is_no_better_than_guesses_or_no_training_is_said_to_be(tmp_path, warnings, untrained, said):
    rows = [row("z", 33, warnings=warnings), row("3 nearest", untrained, kind="baseline")]
    found = finished(tmp_path, rows)
    assert said in found.record.sentence
    write_markdown(tmp_path / "leaderboard.md", found.record)
    text = (tmp_path / "leaderboard.md").read_text()
    assert ("warning (chance): z: top-1, 33.3%" in text) == bool(warnings)


def test_what_the_budget_left_out_is_counted_and_shows_what_it_promised(tmp_path, monkeypatch):
    rows = [row("z", 33, warnings=[GUESS]), pruned("x", 0.7), pruned("y", None)]
    found = finished(tmp_path, rows)
    assert found.record.sentence.endswith("; 2 files were left out for the budget")
    console = Console(file=StringIO(), width=200)
    monkeypatch.setattr(shown, "console", console)
    warned = []
    monkeypatch.setattr(shown, "show_warnings", warned.extend)
    shown.show_benchmark(found, as_json=False)
    assert "pruned: x: promise 0.7: would take" in console.file.getvalue()
    assert "pruned: y: would take" in console.file.getvalue()
    assert [one.code for one in warned] == ["chance"]


def test_nothing_is_called_to_be_deployed_where_nothing_meets_the_bounds(tmp_path):
    bounds = {"latency": 4.0}
    rows = [replace(row("z", 33), within=False), replace(row("a", 32, ms=6.0), within=False)]
    found = finished(tmp_path, rows, bounds)
    assert found.headline == headline(rows[0], rows, bounds) == "None of 2 is within --latency 4 ms; nearest: z"
    assert "deploy" not in found.record.sentence
    assert finished(tmp_path, rows).headline == "Deploy z"


def test_the_table_marks_the_same_rows_as_tied_everywhere(tmp_path):
    rows = [
        row("z", 33, tied=True),
        row("a", 32, tied=True),
        row("b", 20, tied=False),
        row("3 nearest", 33, kind="baseline", tied=True),
    ]
    write_csv(tmp_path / "leaderboard.csv", rows)
    with (tmp_path / "leaderboard.csv").open() as file:
        tied = {one["model"]: one["tied"] for one in csv.DictReader(file)}
    write_markdown(tmp_path / "leaderboard.md", finished(tmp_path, rows).record)
    lines = [
        line.split(" | ") for line in (tmp_path / "leaderboard.md").read_text().splitlines() if line.count("|") > 5
    ]
    marks = {line[0].removeprefix("| "): line[1] == "=" for line in lines[2:]}
    assert marks == {name: mark.lower() == "true" for name, mark in tied.items()}
    assert marks == {"z": True, "a": True, "b": False, "3 nearest": False}
