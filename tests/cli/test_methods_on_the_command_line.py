"""Every objective from the command line, in a sweep, and in the estimator."""

import numpy as np
import pytest
from typer.testing import CliRunner

from headsmith import HeadClassifier
from headsmith.cli import app
from headsmith.trainer import Run
from headsmith.trainer.loss_methods import OBJECTIVE, modules_of

METHODS = tuple(modules_of(OBJECTIVE))
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
    assert shown.exit_code == 2
    assert said in shown.output
    assert not (tmp_path / "run").exists()
