"""Every method from the command line, in a sweep, and in the estimator."""

import numpy as np
import pytest
from typer.testing import CliRunner

from headsmith import HeadClassifier
from headsmith.cli import app
from headsmith.trainer import Run
from headsmith.trainer.loss_defaults import METHODS, options_read

runner = CliRunner()


def headsmith(*arguments):
    return runner.invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.mark.parametrize("loss", METHODS)
def test_a_head_is_trained(tiny_run: Run, tmp_path, loss):
    shown = headsmith(
        *("train", tiny_run.record.features.path, "--out", tmp_path / "run", "--loss", loss),
        *("--epochs", 2, "--device", "cpu"),
    )
    assert shown.exit_code in (0, 4), shown.output  # 4: two epochs need not beat chance
    assert Run.load(tmp_path / "run").config.loss == loss


def test_a_sweep_of_all(tiny_run: Run, tmp_path):
    (tmp_path / "all.yaml").write_text(f"epochs: 1\nloss: [{', '.join(METHODS)}]\np_k: [[.5, 0, .5]]\n")
    out = tmp_path / "sweep"
    shown = headsmith(
        *("sweep", tiny_run.record.features.path, "--config", tmp_path / "all.yaml", "--out", out, "--device", "cpu")
    )
    assert shown.exit_code == 0, shown.output
    assert f"{len(METHODS)} heads in 1 bank" in shown.output


@pytest.mark.parametrize("loss", METHODS)
def test_the_estimator(loss):
    generator = np.random.default_rng(0)
    labels = np.arange(90) % 3
    features = np.eye(3)[labels] + 0.1 * generator.normal(size=(90, 3))
    model = HeadClassifier(loss=loss, epochs=30, learning_rate=0.1, random_state=0).fit(features, labels)
    assert model.score(features, labels) > 0.9


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--loss", "topk_hinge", "--comp-sum-q", "0.5"], "--comp-sum-q: 0.5 found, but it belongs to --loss comp_sum"),
        (["--loss", "comp_sum", "--comp-sum-q", "2"], "--comp-sum-q: 2.0 found"),
        (["--loss", "comp_sum", "--hinge", "beta"], "hinge: beta found, but it belongs to --loss topk_hinge"),
        (["--loss", "topk_hinge", "--hinge", "betta"], "did you mean beta"),
        (["--loss", "topk_entropy", "--top1-mode", "sm"], "--top1-mode: sm found, but it belongs to --loss neuralsort"),
        (
            ["--loss", "topk_entropy", "--inverse-temperature", "2"],
            "--inverse-temperature: 2.0 found, but it belongs to",
        ),
        (["--loss", "smooth_topk", "--m", "3"], "--m: 3 found, but p_k has weights for top-1 to top-5"),
        (["--loss", "smoothtopk"], "did you mean smooth_topk"),
    ],
)
def test_settings_that_it_does_not_read(tiny_run: Run, tmp_path, options, said):
    shown = headsmith("train", tiny_run.record.features.path, "--out", tmp_path / "run", *options)
    assert_refused(shown, said, tmp_path)


BAD = [
    (
        "inverse_temperature",
        "--inverse-temperature",
        "0",
        "--inverse-temperature: 0.0 found, expected a number above 0",
    ),
    (
        "inverse_temperature",
        "--inverse-temperature",
        "-2",
        "--inverse-temperature: -2.0 found, expected a number above",
    ),
    (
        "inverse_temperature",
        "--inverse-temperature",
        "nan",
        "--inverse-temperature: nan found, expected a number above",
    ),
    ("inverse_temperature", "--inverse-temperature", "1e300", "--inverse-temperature: 1e+300 found, expected a number"),
    ("samples", "--samples", "0", "--samples: 0 found, expected 1 to 1,000,000"),
    ("p_k", "--m", "3", "--m: 3 found, but p_k has weights for top-1 to top-5; expected m of at least 5"),
    ("p_k", "--p-k", ",".join(["0.125"] * 8), "--p-k: 8 weights, for top-1 to top-8, but only 6 classes; give fewer"),
]


@pytest.mark.parametrize(
    ("loss", "flag", "value", "said"),
    [(loss, *bad) for loss in METHODS for option, *bad in BAD if option in options_read(loss)],
)
def test_settings_out_of_range(tiny_run: Run, tmp_path, loss, flag, value, said):
    shown = headsmith("train", tiny_run.record.features.path, "--out", tmp_path / "run", "--loss", loss, flag, value)
    assert_refused(shown, said, tmp_path)


def test_plain_cross_entropy_has_no_weight_beyond_top_1(tiny_run: Run, tmp_path):
    shown = headsmith("train", tiny_run.record.features.path, "--out", tmp_path / "run", "--p-k", "0.5,0.5")
    assert_refused(shown, "--p-k: 2 entries found, but method 'softmax' knows top-1 only; expected [1]", tmp_path)


def assert_refused(shown, said, tmp_path):
    assert shown.exit_code == 2
    assert said in shown.output
    assert shown.output.count("\n") == 1
    assert not (tmp_path / "run").exists()
