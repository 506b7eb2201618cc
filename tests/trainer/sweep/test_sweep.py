"""A whole sweep on scikit-learn's digits."""

import hashlib
import json
import shutil
import statistics
import warnings

import pytest
import torch
from PIL import Image
from sklearn.metrics import top_k_accuracy_score
from sweep_tables import table

from headsmith.core.errors import DamagedFileError
from headsmith.trainer import train
from headsmith.trainer.sweep import Sweep, bank_grouping, sweep, sweeping
from headsmith.trainer.sweep.sweep_record import sweep_values

GRID = {
    "device": "cpu",
    "epochs": 6,
    "seed": [0, 1],
    "grids": [
        {"loss": "softmax", "learning_rate": [0.001, 0.01], "m": [8, 10]},
        {"name": "soft", "loss": "softsort", "p_k": [[0.5, 0.5], [1]], "learning_rate": [0.03]},
    ],
}


@pytest.fixture(scope="module")
def found(digits, tmp_path_factory) -> Sweep:
    return sweep(digits, out=tmp_path_factory.mktemp("sweep") / "digits", config=GRID)


def test_a_row_for_each_head_and_one_for_each_setting(found):
    heads, settings = table(found, "sweep.csv"), table(found, "summary.csv")
    assert len(heads) == 2 * (2 + 2)
    assert len(settings) == 2 + 2
    assert [int(row["index"]) for row in heads] == list(range(8))
    assert {row["m"] for row in heads if row["loss"] == "softmax"} == {""}  # not read
    assert (found.record.heads, found.record.banks) == (8, 2)  # a bank for each seed
    assert found.record.axes == ["loss", "p_k", "learning_rate", "seed"]


def test_the_summary_is_mean_and_deviation_over_seeds(found):
    for row in table(found, "summary.csv"):
        keys = ("loss", "p_k", "learning_rate")
        heads = [head for head in table(found, "sweep.csv") if all(head[key] == row[key] for key in keys)]
        values = [float(head["val_top1"]) for head in heads]
        assert len(values) == int(row["seeds"]) == 2
        assert float(row["val_top1_mean"]) == pytest.approx(statistics.fmean(values), abs=1e-3)
        assert float(row["val_top1_std"]) == pytest.approx(statistics.stdev(values), abs=1e-3)


def test_validation_chooses_and_only_the_chosen_are_scored_on_test(found):
    settings = table(found, "summary.csv")
    scores = [float(row["val_top1_mean"]) for row in settings]
    assert scores == sorted(scores, reverse=True)
    assert settings[0]["chosen"] == "winner"
    assert sorted(row["chosen"] for row in settings) == ["", "", "group", "winner"]
    for row in settings:
        assert (row["test_top1_mean"] != "") == (row["chosen"] != "")
    assert sum(row["test_top1"] != "" for row in table(found, "sweep.csv")) == 2 * 2


def test_the_best_run_is_the_best_seed_of_the_winner(found, digits):
    run, winner = found.best, found.record.winner
    features, labels = digits.arrays("test")
    logits = run.head(features).detach().numpy()
    for k in (1, 5):
        expected = top_k_accuracy_score(labels, logits, k=k)
        assert getattr(winner.test, f"top{k}") == pytest.approx(expected)
    assert run.record.results.test == winner.test
    chosen = table(found, "summary.csv")[0]
    rivals = [row for row in table(found, "sweep.csv") if row["test_top1"] and row["group"] == chosen["group"]]
    assert 100 * run.record.results.val.top1 == pytest.approx(max(float(r["val_top1"]) for r in rivals), abs=1e-3)
    rows = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == list(range(1, 7))


def test_repr_says_trials_winner_and_accuracy(found):
    winner, results = found.record.winner, found.best.record.results
    assert repr(found) == (
        f"Sweep({str(found.path)!r}: {found.record.heads} heads, winner {winner.group}, "
        f"val top-1 {100 * results.val.top1:.1f} %, test top-1 {100 * results.test.top1:.1f} %)"
    )


def test_a_head_of_a_bank_is_the_head_that_train_trains_alone(found, digits, tmp_path):
    config = found.best.config
    settings = {name: value for name, value in vars(config).items() if name not in ("device",)}
    alone = train(digits, out=tmp_path / "run", device="cpu", **settings)
    torch.testing.assert_close(alone.head.weight, found.best.head.weight, atol=1e-5, rtol=1e-4)
    assert alone.record.results.best_epoch == found.best.record.results.best_epoch


@pytest.mark.parametrize("name", ["sweep.csv", "summary.csv", "sweep.png", "best/run.json"])
def test_a_file_of_a_sweep_that_was_edited_is_refused(found, tmp_path, name):
    copy = shutil.copytree(found.path, tmp_path / "copy")
    (copy / name).write_bytes((copy / name).read_bytes() + b"\n")
    with pytest.raises(DamagedFileError, match=f"{name}: not what the sweep wrote"):
        Sweep.load(copy)


def test_the_record_says_what_it_was_made_with(found):
    record = json.loads((found.path / "sweep.json").read_text())
    assert sweep_values(Sweep.load(found.path).record) == record
    assert sweep_values(found.record) == record
    assert record["features"]["fingerprint"] == "digits"
    assert {"torch", "headsmith", "python"} <= set(record["versions"])
    for name, digest in record["files_sha256"].items():
        assert hashlib.sha256((found.path / name).read_bytes()).hexdigest() == digest
    assert record["paired"]["split"] == "test"
    (tests,) = record["paired"]["tests"].values()
    assert set(tests) == {"top1", "top5"}
    assert not list(found.path.parent.glob("*.partial"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record["winner"]["test"].update(top1=1.0), "winner: not what the sweep wrote"),
        (lambda record: record.update(warnings=[], fields_sha256=None), "fields_sha256: missing"),
        (lambda record: record["fields_sha256"].pop("seconds"), "seconds: not what the sweep wrote"),
        (lambda record: record.pop("fields_sha256"), "fields_sha256: missing"),
    ],
)
def test_a_record_that_was_edited_is_refused(found, tmp_path, change, message):
    record = json.loads((found.path / "sweep.json").read_text())
    change(record)
    (tmp_path / "sweep.json").write_text(json.dumps(record))
    with pytest.raises(DamagedFileError, match=rf"sweep\.json: {message}.*sweep again"):
        Sweep.load(tmp_path)


def test_the_picture_has_a_panel_for_each_axis_that_the_legend_does_not_show(found):
    with Image.open(found.path / "sweep.png") as image:
        assert image.size == (2 * 440, 495)  # p_k, learning rate; the loss is the group
        assert len(image.convert("L").getcolors(256)) > 20


def test_an_interrupted_sweep_goes_on(digits, found, tmp_path, monkeypatch):
    out, asked = tmp_path / "sweep", []
    fit = sweeping.fit_heads

    def once(rows, classes, configs, *arguments, **keywords):
        asked.append(configs[0].seed)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return fit(rows, classes, configs, *arguments, **keywords)

    monkeypatch.setattr(sweeping, "fit_heads", once)
    with pytest.raises(KeyboardInterrupt):
        sweep(digits, out=out, config=GRID)
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.partial"]
    resumed = sweep(digits, out=out, config=GRID)
    assert len(asked) == 3
    assert asked[1] == asked[2] != asked[0]
    drop = {"bank_seconds"}
    rows = [
        [{k: v for k, v in row.items() if k not in drop} for row in table(s, "sweep.csv")] for s in (resumed, found)
    ]
    assert rows[0] == rows[1]
    assert [path.name for path in tmp_path.iterdir()] == ["sweep"]


def test_the_chosen_settings_are_trained_with_further_seeds(digits, tmp_path):
    config = {"device": "cpu", "epochs": 2, "loss": ["softmax", "softsort"], "p_k": [[1]], "learning_rate": [0.01, 0.1]}
    found = sweep(digits, out=tmp_path / "sweep", config=config | {"final_seeds": [0, 1, 2]})
    settings = table(found, "summary.csv")
    assert sorted((row["chosen"] != "", row["seeds"]) for row in settings) == [(False, "1")] * 2 + [(True, "3")] * 2
    assert found.record.heads == 4 + 2 * 2
    assert found.record.banks == 1 + 2
    for name in ("val_top1_std", "test_top1_std"):
        assert [row[name] != "" for row in settings] == [row["chosen"] != "" for row in settings]


def test_banks_are_cut_to_memory_and_the_heads_stay_the_same(digits, found, tmp_path, monkeypatch):
    monkeypatch.setitem(bank_grouping.NUMBERS, "cpu", 2 * 10 * (5 * 64 + 512))
    cut = sweep(digits, out=tmp_path / "sweep", config=GRID)
    assert cut.record.banks == 4
    for ours, theirs in zip(table(cut, "summary.csv"), table(found, "summary.csv"), strict=True):
        assert (ours["loss"], ours["chosen"]) == (theirs["loss"], theirs["chosen"])
        assert float(ours["val_top1_mean"]) == pytest.approx(float(theirs["val_top1_mean"]), abs=0.3)


def test_lbfgs_has_a_bank_for_each_head(digits, tmp_path):
    config = {"device": "cpu", "epochs": 3, "optimizer": "lbfgs", "loss": ["softmax", "neuralsort"], "p_k": [[1]]}
    found = sweep(digits, out=tmp_path / "sweep", config=config | {"label_smoothing": [0, 0.1]})
    assert (found.record.heads, found.record.banks) == (4, 4)
    alone = train(digits, out=tmp_path / "run", **vars(found.best.config))
    torch.testing.assert_close(alone.head.weight, found.best.head.weight)


@pytest.mark.parametrize("name", ["猫 🐶", "بيت", "naïve Ελ $x_2$"])
def test_letters_that_the_usual_font_lacks_are_drawn_without_a_warning(digits, tmp_path, name):
    grids = [{"name": name, "loss": "softsort", "p_k": [[1]]}, {"loss": "softmax"}]
    config = {"device": "cpu", "epochs": 1, "learning_rate": [0.01, 0.1], "grids": grids}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sweep(digits, out=tmp_path / "sweep", config=config)
    assert {row.group for row in found.settings} == {name, "softmax"}
