"""What a sweep chooses by, and what it refuses: settings, features and folders that do not fit."""

import pytest
from digits_features import digits_with
from sklearn.datasets import load_digits
from sklearn.metrics import top_k_accuracy_score
from sweep_tables import table

from headsmith.core.errors import InputError
from headsmith.trainer import FeatureSet, train
from headsmith.trainer.sweep import Sweep, sweep, sweeping
from headsmith.trainer.sweep.sweep_record import PairedTests


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
    assert warning.message.startswith("the winner: the training loss ")
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
    with pytest.raises(InputError, match=r"sweep\.partial: is not an unfinished sweep \(holds thesis"):
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
