"""Training on scikit-learn's digits: real data, and scikit-learn's own answer beside ours."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import top_k_accuracy_score
from split_features import feature_set

from headsmith.core.errors import InputError
from headsmith.models.heads import Linear
from headsmith.trainer import FeatureSet, Run, TrainConfig, train

QUICK = {"epochs": 3, "learning_rate": 0.01, "device": "cpu"}


def logits_of(run: Run, digits: FeatureSet, split: str) -> tuple[np.ndarray, np.ndarray]:
    features, labels = digits.arrays(split)
    with torch.inference_mode():
        return run.head(features).numpy(), labels.numpy()


@pytest.mark.parametrize("loss", [{"loss": "softmax"}, {"loss": "neuralsort", "p_k": (0.5, 0.5)}])
def test_as_accurate_as_scikit_learn(digits, tmp_path, loss):
    features, labels = digits.arrays("test")
    peer = LogisticRegression(max_iter=2000, C=10).fit(*digits.arrays("train")).predict_proba(features)
    run = train(digits, out=tmp_path / "run", epochs=60, learning_rate=0.02, device="cpu", **loss)
    expected = sum(w * top_k_accuracy_score(labels, peer, k=k) for k, w in enumerate(run.config.p_k, start=1))
    assert run.record.results.test.score > expected - 0.02


def test_a_full_batch_is_one_step_of_adam_on_the_cross_entropy(digits, tmp_path):
    features, labels = digits.arrays("train")
    head = Linear(64, 10)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.01)
    torch.nn.functional.cross_entropy(head(features), labels).backward()
    optimizer.step()
    run = train(
        digits, out=tmp_path / "run", epochs=1, batch_size=len(labels), learning_rate=0.01, start="zeros", device="cpu"
    )
    torch.testing.assert_close(run.head.weight, head.weight.detach(), atol=1e-6, rtol=0)


def test_reported_accuracies_are_those_of_the_saved_head(digits, tmp_path):
    run = train(digits, out=tmp_path / "run", **QUICK)
    for split in ("val", "test"):
        logits, labels = logits_of(run, digits, split)
        for k in (1, 5):
            expected = top_k_accuracy_score(labels, logits, k=k, labels=range(10))
            assert getattr(getattr(run.record.results, split), f"top{k}") == pytest.approx(expected, abs=1e-12)


def test_the_best_epoch_is_kept_and_patience_ends_the_run(digits, tmp_path):
    run = train(digits, out=tmp_path / "run", epochs=50, learning_rate=5.0, patience=2, seed=1, device="cpu")
    rows = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    scores, losses = ([row["val"][name] for row in rows] for name in ("score", "loss"))
    best = run.record.results.best_epoch
    assert scores[best - 1] == max(scores)
    assert best <= len(rows) - 2 < 48
    assert min(losses[-2:]) > 0.999 * min(losses[:-2])
    assert asdict(run.record.results.val) == rows[best - 1]["val"]
    assert all("test" not in row for row in rows)


def test_selection_weighs_the_accuracies_by_p_k(digits, tmp_path):
    run = train(digits, out=tmp_path / "run", loss="neuralsort", p_k=(0.25, 0, 0, 0, 0.75), **QUICK)
    val = run.record.results.val
    assert val.score == pytest.approx(0.25 * val.top1 + 0.75 * val.top5)


def test_a_seed_fixes_the_head(digits, tmp_path):
    hashes = [
        train(digits, out=tmp_path / name, seed=seed, **QUICK).record.head_sha256
        for name, seed in (("a", 3), ("b", 3), ("c", 4))
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_config_spells_out_every_value(digits, tmp_path):
    run = train(digits, out=tmp_path / "run", loss="neuralsort", **QUICK)
    config = yaml.safe_load((run.path / "config.yaml").read_text())
    assert None not in config.values()
    assert config["p_k"] == [0.5, 0, 0, 0, 0.5]
    assert config["m"] == 10  # 16 asked, 10 classes
    assert None not in run.record.loss.values()
    assert TrainConfig.load(run.path / "config.yaml") == run.config


def test_three_classes_have_no_top5(tmp_path):
    generator = np.random.default_rng(0)
    labels = np.arange(60) % 3
    three = feature_set(generator.normal(size=(60, 4)) + labels[:, None], labels, classes=3)
    results = train(three, out=tmp_path / "run", **QUICK).record.results
    assert results.test.top5 is None
    assert 0 <= results.test.top1 <= 1
    with pytest.raises(InputError, match="5 weights, for top-1 to top-5, but only 3 classes"):
        train(three, out=tmp_path / "five", loss="neuralsort", p_k=(0.5, 0, 0, 0, 0.5))
    assert not (tmp_path / "five").exists()
    assert train(three, out=tmp_path / "two", loss="neuralsort", **QUICK).config.p_k == (0.5, 0.5)


def test_a_class_without_training_rows_still_has_a_logit(tmp_path):
    labels = np.array([0, 1] * 30 + [0, 1, 2, 2] * 10)
    rows = feature_set(np.eye(3)[labels], labels, classes=3)
    run = train(rows, out=tmp_path / "run", epochs=20, learning_rate=0.1, device="cpu")
    assert run.head.num_classes == 3
    assert run.record.results.test.top1 == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "neuralsrt"}, "loss: 'neuralsrt' found, .*did you mean neuralsort"),
        ({"loss": "neuralsort", "p_k": (0.5, 0.4)}, "p_k: sum"),
        ({"loss": "neuralsort", "p_k": (1.5, -0.5)}, "p_k"),
        (
            {"loss": "neuralsort", "m": 3},
            "^m: 3 found, but p_k has weights for top-1 to top-5; expected m of at least 5",
        ),
        (
            {"loss": "neuralsort", "inverse_temperature": 0.0},
            "inverse_temperature: 0.0 found, expected a number above 0",
        ),
        ({"head": "mlpp"}, "head: 'mlpp' found, expected one of linear"),
        ({"epochs": 0}, "epochs: 0 found, expected a whole number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate: nan found"),
        ({"seed": 2**70}, "seed: .* found, expected 0 to"),
        ({"device": "tpu"}, "^device: 'tpu' found"),
        ({"select": (0.0, 0.0)}, "select: .* found, expected weights of 0 or more, one of them above 0"),
        ({"select": "top3"}, "select: 'top3' found, .*; did you mean top5 or top1"),
        ({"warmup": 5.0, "epochs": 3}, "warmup: 5.0 epochs found, expected at most `epochs`"),
        ({"gpu_memory": -1.0}, "gpu_memory: -1.0 found, expected gigabytes"),
        ({"optimizer": "adamm"}, "optimizer: 'adamm' found, .*; did you mean adam"),
    ],
)
def test_settings_that_do_not_fit(digits, tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        train(digits, out=tmp_path / "run", **change)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "given", "told"),
    [
        ("loss: neuralsort\nm: 3\n", {}, "^settings.yaml: m: 3 found, but p_k has weights for top-1 to top-5"),
        ("loss: neuralsort\nm: 3\np_k: [.5, 0, 0, 0, .5]\n", {}, "^settings.yaml: m: 3 found"),
        ("m: 3\n", {"loss": "bitonic", "preset": "paper/imagenet1k"}, "^settings.yaml: m: 3 found"),
        ("loss: neuralsort\n", {"m": 4}, "^m: 4 found, but p_k has weights for top-1 to top-5"),
        (
            f"loss: neuralsort\np_k: {[0.5] + [0] * 15 + [0.5]}\n",
            {},
            "^settings.yaml: p_k: 17 entries found, but m is 16",
        ),
        (f"loss: neuralsort\nm: null\np_k: {[0.5] + [0] * 9 + [0.5]}\n", {}, "^settings.yaml: p_k: 11 weights"),
        (f"select: {[0.5] + [0] * 9 + [0.5]}\n", {}, "^settings.yaml: select: 11 weights, for top-1 to top-11"),
    ],
)
def test_ranks_and_candidates_that_do_not_fit_are_told_with_the_file_of_the_setting(digits, text, given, told):
    Path("settings.yaml").write_text(text)
    with pytest.raises(InputError, match=told):
        train(digits, out="run", config="settings.yaml", **given)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_cuda_that_is_not_there(digits, tmp_path):
    with pytest.raises(InputError, match=r"device: cuda found, but torch .* finds no CUDA device"):
        train(digits, out=tmp_path / "run", device="cuda")


def test_a_loss_that_overflows_says_so(digits, tmp_path):
    with pytest.raises(InputError, match=r"the loss is (nan|inf) in epoch 1; lower `learning_rate`"):
        train(digits, out=tmp_path / "run", learning_rate=1e37, epochs=1, device="cpu")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rate", [1e38, 1e300])
def test_weights_that_overflow_in_the_first_epoch_say_where(digits, tmp_path, rate):
    one_step = {"learning_rate": rate, "batch_size": 10_000, "device": "cpu"}
    with pytest.raises(InputError, match=r"the loss on val is (nan|inf) after epoch 1; lower `learning_rate` \(now 1e"):
        train(digits, out=tmp_path / "run", **one_step)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_nothing(digits, tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("headsmith.trainer.fitting.fit.Fit._score", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(digits, out=tmp_path / "run", **QUICK)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_run_is_kept_unless_told(digits, tmp_path):
    first = train(digits, out=tmp_path / "run", seed=1, **QUICK)
    with pytest.raises(InputError, match=r"run: exists already"):
        train(digits, out=tmp_path / "run", seed=2, **QUICK)
    assert Run.load(tmp_path / "run").record == first.record
    assert train(digits, out=tmp_path / "run", seed=2, overwrite=True, **QUICK).config.seed == 2


def test_a_wrong_setting_names_the_file_that_holds_it(digits, tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("learning_rate: -1\n")
    with pytest.raises(InputError, match=r"settings\.yaml: learning_rate: -1 found, expected a number above 0"):
        train(digits, out=tmp_path / "run", config=file)
    with pytest.raises(InputError, match=r"^learning_rate: -2 found"):
        train(digits, out=tmp_path / "run", config=file, learning_rate=-2)
