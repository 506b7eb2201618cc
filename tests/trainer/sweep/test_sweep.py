"""A whole sweep on scikit-learn's digits."""

import csv
import hashlib
import json
import shutil
import statistics
import warnings

import pytest
import torch
from digits_features import digits_with
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.metrics import top_k_accuracy_score

from headsmith.core.errors import DamagedFileError, InputError
from headsmith.trainer import FeatureSet, train
from headsmith.trainer.sweep import Sweep, bank_grouping, sweep, sweeping
from headsmith.trainer.sweep.sweep_record import PairedTests, sweep_values

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


def table(sweep: Sweep, name: str) -> list[dict[str, str]]:
    with (sweep.path / name).open(newline="") as file:
        return list(csv.DictReader(file))


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


def test_heads_of_one_p_k_are_chosen_by_it(digits, tmp_path):
    config = {"device": "cpu", "epochs": 2, "loss": "softsort", "p_k": [0.5, 0.5], "m": [8, 10], "select": "p_k"}
    found = sweep(digits, out=tmp_path / "sweep", config=config)
    val = found.best.record.results.val
    logits = found.best.head(digits.arrays("val")[0]).detach().numpy()
    top2 = top_k_accuracy_score(digits.arrays("val")[1], logits, k=2)
    assert val.score == pytest.approx(0.5 * val.top1 + 0.5 * top2)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"loss": ["softmax", "softsort"]}, r"\[1.0\] for softmax and \[0.5, 0.0, 0.0, 0.0, 0.5\] for softsort"),
        (
            {"loss": ["softsort"], "p_k": [[1], None]},
            r"\[1.0\] for softsort and \[0.5, 0.0, 0.0, 0.0, 0.5\] for softsort",
        ),
    ],
)
def test_heads_of_another_p_k_cannot_be_chosen_by_it(digits, tmp_path, settings, found):
    advice = "expected top1, top5, or weights of top-1, top-2, ... such as"
    with pytest.raises(InputError, match=f"config: select: p_k found, which is {found}, .*; {advice}"):
        sweep(digits, out=tmp_path / "sweep", config={"device": "cpu", "select": "p_k"} | settings)
    assert list(tmp_path.iterdir()) == []


def test_cross_entropy_is_chosen_by_p_k_beside_heads_of_top1(digits, tmp_path):
    config = {"device": "cpu", "epochs": 1, "select": "p_k", "loss": ["softmax", "softsort"], "p_k": [[1]]}
    heads = table(sweep(digits, out=tmp_path / "sweep", config=config), "sweep.csv")
    assert [row["loss"] for row in heads] == ["softmax", "softsort"]
    assert all(row["val_score"] == row["val_top1"] for row in heads)


def test_an_existing_sweep_is_kept_unless_told(digits, tmp_path, monkeypatch):
    config = {"device": "cpu", "epochs": 1, "learning_rate": [0.01]}
    first = sweep(digits, out=tmp_path / "sweep", config=config).best
    with monkeypatch.context() as patch:
        patch.setattr(sweeping, "fit_heads", lambda *args, **keywords: pytest.fail("trained before looking at `out`"))
        with pytest.raises(InputError, match=r"sweep: exists already"):
            sweep(digits, out=tmp_path / "sweep", config=config)
    again = sweep(digits, out=tmp_path / "sweep", config=config | {"seed": 3}, overwrite=True).best
    assert again.config.seed == 3 != first.config.seed


def test_features_without_validation_or_without_test(tmp_path):
    config = {"device": "cpu", "epochs": 2, "loss": ["softmax", "softsort"], "p_k": [[1]], "learning_rate": 0.01}
    with pytest.raises(InputError, match=r"digits: has no split 'val', found \['train', 'test'\]; a sweep needs it"):
        sweep(digits_with(("train", "test")), out=tmp_path / "sweep", config=config)
    found = sweep(digits_with(("train", "val")), out=tmp_path / "sweep", config=config)
    assert found.record.paired == PairedTests(None, {})
    assert found.best.record.results.test is None


def test_settings_that_do_not_fit_the_features(digits, tmp_path):
    with pytest.raises(InputError, match=r"config: loss: 'neuralsrt' found, .*did you mean neuralsort"):
        sweep(digits, out=tmp_path / "sweep", config={"loss": ["softmax", "neuralsrt"]})
    with pytest.raises(InputError, match=r"config: p_k: 12 weights, for top-1 to top-12, but only 10 classes"):
        sweep(digits, out=tmp_path / "sweep", config={"loss": "neuralsort", "p_k": [[0.0] * 11 + [1.0]]})
    with pytest.raises(InputError, match=r"start: 'gone' found, expected"):
        sweep(digits, out=tmp_path / "sweep", config={"start": ["zeros", "gone"], "device": "cpu"})
    assert list(tmp_path.iterdir()) == []


def test_a_learning_rate_that_blows_up_is_reported_and_never_chosen(digits, tmp_path):
    config = {"device": "cpu", "epochs": 2, "learning_rate": [0.01, 0.1, 1e38]}
    found = sweep(digits, out=tmp_path / "sweep", config=config)
    assert [row["diverged"] for row in table(found, "sweep.csv")] == ["false", "false", "true"]
    assert "1 of 3 heads, with learning rates 1e+38" in found.warnings[0].message
    assert found.best.config.learning_rate < 1
    with pytest.raises(InputError, match="the loss of every head became infinite or NaN"):
        sweep(digits, out=tmp_path / "none", config=config | {"learning_rate": 1e38})


def test_a_winner_that_no_loss_speaks_for(digits, tmp_path):
    config = {"device": "cpu", "epochs": 2, "learning_rate": [1e-4, 1e10]}
    found = sweep(digits, out=tmp_path / "sweep", config=config)
    assert found.best.config.learning_rate == 1e10
    (warning,) = [one for one in found.warnings if one.code in ("useless", "runaway", "edge")]
    assert warning.message.startswith("the winner: the loss is above that of equal scores")
    assert warning.code == "runaway"
    assert found.worthless
    assert "runaway" in {one.code for one in found.best.record.warnings}


def test_heads_that_start_from_a_run(digits, tmp_path):
    run = train(digits, out=tmp_path / "run", epochs=2, learning_rate=0.1, device="cpu")
    config = {"device": "cpu", "epochs": 1, "learning_rate": [1e-30, 1e-29], "start": ["zeros", str(run.path)]}
    found = sweep(digits, out=tmp_path / "sweep", config=config)
    expected = 100 * run.record.results.val.top1
    rows = [row for row in table(found, "sweep.csv") if row["start"] == str(run.path)]
    assert [float(row["val_top1"]) for row in rows] == pytest.approx([expected] * 2, abs=1e-3)
    assert found.best.record.results.val.top1 == run.record.results.val.top1


def test_torchrun_is_refused(digits, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    with pytest.raises(InputError, match="sweep: runs in one process; start it without torchrun"):
        sweep(digits, out=tmp_path / "sweep", config={"device": "cpu"})


def test_something_else_in_the_way(digits, tmp_path):
    (tmp_path / "sweep.partial").mkdir()
    (tmp_path / "sweep.partial" / "thesis.tex").touch()
    with pytest.raises(InputError, match=r"sweep\.partial: is in the way and not an unfinished sweep \(holds thesis"):
        sweep(digits, out=tmp_path / "sweep", config={"device": "cpu"})


def test_a_folder_that_is_no_sweep(tmp_path):
    with pytest.raises(InputError, match="gone: no such sweep"):
        Sweep.load(tmp_path / "gone")
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(InputError, match="format is None, expected 'headsmith.sweep'"):
        Sweep.load(tmp_path)


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_fewer_than_five_classes_have_no_top5(tmp_path, monkeypatch, classes):
    pixels, labels = load_digits(n_class=classes, return_X_y=True)
    few, out = FeatureSet.from_arrays(pixels / 16, labels), tmp_path / "sweep"
    grid = {"device": "cpu", "epochs": 4, "seed": [0, 1], "learning_rate": [0.01, 0.1]}
    fit, calls = sweeping.fit_heads, []

    def interrupted(*args, **keywords):
        if calls:
            raise KeyboardInterrupt
        calls.append(args)
        return fit(*args, **keywords)

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(sweeping, "fit_heads", interrupted)
        sweep(few, out=out, config=grid)
    assert list(tmp_path.glob("sweep.partial/bank-*"))
    resumed = sweep(few, out=out, config=grid)
    whole = sweep(few, out=tmp_path / "whole", config=grid)
    for found in (resumed, whole):
        scores = found.record.winner.val
        assert (type(scores.n), scores.top5) == (int, None)
        assert scores.top1 > 0.9
    assert resumed.record.winner == whole.record.winner


@pytest.mark.parametrize("name", ["猫 🐶", "بيت", "naïve Ελ $x_2$"])
def test_letters_that_the_usual_font_lacks_are_drawn_without_a_warning(digits, tmp_path, name):
    grids = [{"name": name, "loss": "softsort", "p_k": [[1]]}, {"loss": "softmax"}]
    config = {"device": "cpu", "epochs": 1, "learning_rate": [0.01, 0.1], "grids": grids}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sweep(digits, out=tmp_path / "sweep", config=config)
    assert {row.group for row in found.settings} == {name, "softmax"}
