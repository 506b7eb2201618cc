"""A fit against the loop that anybody would write with torch alone, and a bank against its heads alone."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, top_k_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from headsmith.core.distributed import Processes
from headsmith.core.errors import InputError
from headsmith.models.heads import Linear
from headsmith.trainer import TrainConfig
from headsmith.trainer.criterion import criterion
from headsmith.trainer.fitting import fit_heads
from headsmith.trainer.fitting.fit import Fit
from headsmith.trainer.fitting.row_order import row_order
from headsmith.trainer.initialization import Initialization, initialized_head
from headsmith.trainer.run_record import InitializationRecord

CLASSES, DIMS = 6, 5
LOSSES = ("softmax", "softmax", "neuralsort", "softsort")
OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


def plain(rows, config, head):
    """`config.epochs` epochs of batches in the same order, in torch."""
    features, labels = rows["train"]
    extra = {"momentum": config.momentum} if config.optimizer == "sgd" else {}
    optimizer = OPTIMIZERS[config.optimizer](
        head.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, **extra
    )
    averages, weights = [torch.zeros_like(p) for p in head.parameters()], 0.0
    loss = criterion(config)
    for epoch in range(1, config.epochs + 1):
        for batch in row_order(labels, config.seed, epoch, balanced=config.balanced).split(config.batch_size):
            optimizer.zero_grad()
            loss(head(features[batch]), labels[batch]).mean().backward()
            optimizer.step()
            decay = config.averaging
            averages = [decay * a + (1 - decay) * p.detach() for a, p in zip(averages, head.parameters(), strict=True)]
            weights = decay * weights + 1 - decay
    return [average / weights for average in averages]


def zeros() -> torch.nn.Linear:
    head = torch.nn.Linear(DIMS, CLASSES)
    return head.requires_grad_(False).apply(lambda m: (m.weight.zero_(), m.bias.zero_())).requires_grad_()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"loss": "neuralsort", "m": 4, "p_k": (0.5, 0.5)},
        {"optimizer": "adamw", "weight_decay": 0.1},
        {"optimizer": "sgd", "weight_decay": 0.01},
        {"optimizer": "sgd", "momentum": 0.0},
        {"label_smoothing": 0.1},
        {"balanced": True},
        {"averaging": 0.9},
        {"batch_size": 1000},
        {"seed": 7, "batch_size": 7},
    ],
    ids=str,
)
def test_the_last_epoch_is_that_of_a_plain_loop(rows, config, changes):
    config = replace(config, **changes)
    head = zeros()
    expected = plain(rows, replace(config, batch_size=min(config.batch_size, 150)), head)
    [fitted] = fit_heads({"train": rows["train"]}, CLASSES, [config])
    for parameter, value in zip(fitted.head.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.detach(), value, atol=2e-5, rtol=1e-4)


def test_float16_features_are_computed_in_float32(rows, config):
    half = {name: (features.half(), labels) for name, (features, labels) in rows.items()}
    wide = {name: (features.float(), labels) for name, (features, labels) in half.items()}
    [a], [b] = (fit_heads(data, CLASSES, [config]) for data in (half, wide))
    assert torch.equal(a.head.weight, b.head.weight)


# m is the number of classes: where scores are cut off, rounding decides which class is a candidate.
MIXED = [
    {"loss": "softmax"},
    {"loss": "sinkhorn", "m": 6, "p_k": (0.5, 0.5)},
    {"loss": "softmax", "learning_rate": 0.2, "weight_decay": 0.01},
    {"loss": "neuralsort", "m": 6, "p_k": (0.2, 0.8)},
    {"loss": "sinkhorn", "m": 6, "p_k": (0.5, 0.5), "learning_rate": 0.01},
]


@pytest.mark.parametrize("shared", [{}, {"head": "norm_linear"}, {"head": "cosine"}, {"head": "mlp", "hidden": 3}])
def test_a_bank_gives_what_its_heads_give_alone(rows, config, shared):
    configs = [replace(config, **shared, **own) for own in MIXED]
    together = fit_heads(rows, CLASSES, configs)
    for own, fitted in zip(configs, together, strict=True):
        [alone] = fit_heads(rows, CLASSES, [own])
        assert fitted.config == alone.config
        assert len(fitted.history) == len(alone.history)
        for a, b in zip(fitted.head.parameters(), alone.head.parameters(), strict=True):
            torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3)
        assert fitted.val.loss == pytest.approx(alone.val.loss, rel=1e-3)


def test_each_head_of_a_bank_stops_on_its_own(rows, config):
    configs = [replace(config, epochs=12, patience=2, learning_rate=rate) for rate in (3.0, 0.02)]
    for fitted, own in zip(fit_heads(rows, CLASSES, configs), configs, strict=True):
        [alone] = fit_heads(rows, CLASSES, [own])
        assert [epoch.epoch for epoch in fitted.history] == [epoch.epoch for epoch in alone.history]
        assert fitted.best.epoch == alone.best.epoch


def test_lbfgs_finds_the_penalised_optimum_of_scikit_learn(rows, config):
    features, labels = rows["train"]
    decay = 0.05
    lbfgs = replace(config, optimizer="lbfgs", learning_rate=None, weight_decay=decay, epochs=10)
    [fitted] = fit_heads({"train": rows["train"]}, CLASSES, [lbfgs])
    # A column of ones in place of scikit-learn's intercept, because ours is penalised too.
    design = np.hstack([features.numpy(), np.ones((len(labels), 1))]).astype(np.float64)
    peer = LogisticRegression(C=1 / (decay * len(labels)), fit_intercept=False, tol=1e-9, max_iter=5000)
    peer.fit(design, labels.numpy())
    found = torch.cat([fitted.head.weight, fitted.head.bias[:, None]], dim=1).detach().double().numpy()
    np.testing.assert_allclose(found, peer.coef_, atol=2e-3)


@pytest.mark.parametrize("optimizer", ["lbfgs", "sgd", "adam", "adamw"])
def test_the_training_loss_holds_no_penalty(rows, config, optimizer):
    """The first epoch from zeros begins with the loss of equal scores, and a strong penalty keeps the head there."""
    features, labels = rows["train"]
    decay = replace(
        config, optimizer=optimizer, learning_rate=1e-3, weight_decay=30.0, epochs=4, batch_size=len(labels)
    )
    [fitted] = fit_heads(
        {"train": rows["train"]},
        CLASSES,
        [decay],
        Initialization(Linear(features.shape[1], CLASSES), InitializationRecord("test")),
    )
    assert fitted.history[-1].loss <= math.log(CLASSES) * (1 + 1e-3)


def test_lbfgs_records_the_loss_of_the_head_before_its_epoch(rows, config):
    features, labels = rows["train"]
    head = Linear(features.shape[1], CLASSES)
    torch.nn.init.normal_(head.weight, generator=torch.Generator().manual_seed(0))
    logits = head(features).detach().double().numpy()
    lbfgs = replace(config, optimizer="lbfgs", learning_rate=None, weight_decay=0.5, epochs=1)
    [fitted] = fit_heads({"train": rows["train"]}, CLASSES, [lbfgs], Initialization(head, InitializationRecord("test")))
    assert fitted.history[0].loss == pytest.approx(log_loss(labels, softmax(logits, axis=1)), rel=1e-5)


def test_lbfgs_fits_one_head_at_a_time(rows, config):
    lbfgs = replace(config, optimizer="lbfgs")
    with pytest.raises(InputError, match="lbfgs found for 2 heads"):
        fit_heads(rows, CLASSES, [lbfgs, lbfgs])


def test_scores_are_scikit_learns_for_the_head_that_is_kept(rows, config):
    [fitted] = fit_heads(rows, CLASSES, [replace(config, select=(0.3, 0, 0.7))])
    for name, found in (("val", fitted.val), ("test", fitted.test)):
        features, labels = rows[name]
        logits = fitted.head(features).detach().numpy()
        top = {k: top_k_accuracy_score(labels, logits, k=k, labels=range(CLASSES)) for k in (1, 3, 5)}
        assert (found.n, found.top1, found.top5) == (60, pytest.approx(top[1]), pytest.approx(top[5]))
        assert found.score == pytest.approx(0.3 * top[1] + 0.7 * top[3])
    assert (fitted.test_ranks < 1).double().mean() == pytest.approx(fitted.test.top1)


def test_a_test_split_is_scored_where_it_is_given(rows, config):
    [fitted] = fit_heads({name: rows[name] for name in ("train", "val")}, CLASSES, [config])
    assert fitted.test is None
    assert len(fitted.test_ranks) == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("classes", [6, 16])
def test_half_precision_on_a_card_is_the_plain_loop_within_rounding(classes):
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(classes, (400,), generator=generator)
    features = (torch.eye(classes)[labels] @ torch.randn(classes, 16, generator=generator)).half()
    # Not Adam: it makes whole steps of gradients that are nothing but rounding.
    base = TrainConfig(
        epochs=3, batch_size=32, optimizer="sgd", momentum=0.0, start="zeros", top1_mode="sm", device="cuda"
    )
    configs = [replace(base, loss=loss, m=classes, learning_rate=0.02 * (1 + i)) for i, loss in enumerate(LOSSES)]
    for together in ([configs[0]], configs):
        for own, fitted in zip(together, fit_heads({"train": (features, labels)}, classes, together), strict=True):
            head = torch.nn.Linear(16, classes).requires_grad_(False)
            head.apply(lambda m: (m.weight.zero_(), m.bias.zero_())).requires_grad_()
            expected = plain({"train": (features.float(), labels)}, replace(own, device="cpu"), head)
            for parameter, value in zip(fitted.head.parameters(), expected, strict=True):
                # The slopes of the others jump where scores change their order.
                tolerance = 1e-3 if own.loss == "softmax" else 0.06
                torch.testing.assert_close(parameter.detach(), value, atol=tolerance, rtol=0)


def test_noise_and_dropout_are_drawn_from_the_seed(rows, config):
    config = replace(config, dropout=0.3, noise=0.2)
    heads = [fit_heads(rows, CLASSES, [replace(config, seed=seed)])[0].head for seed in (1, 1, 2)]
    assert torch.equal(heads[0].weight, heads[1].weight)
    assert not torch.equal(heads[0].weight, heads[2].weight)


def test_dropout_keeps_the_mean_of_a_feature(rows, config):
    dropped = _steps(rows, replace(config, dropout=0.25))._augmented(torch.ones(400, 500))
    assert dropped.mean() == pytest.approx(1, abs=0.01)
    assert (dropped == 0).double().mean() == pytest.approx(0.25, abs=0.01)


def test_noise_is_in_units_of_the_root_mean_square(rows, config):
    steps = _steps(rows, replace(config, noise=0.5))
    scale = float(rows["train"][0].square().mean().sqrt())
    assert steps._augmented(torch.zeros(400, 500)).std() == pytest.approx(0.5 * scale, rel=0.01)


def test_a_diverged_head_does_not_hurt_its_neighbours(rows, config):
    wild = replace(config, learning_rate=1e38)
    diverged, healthy = fit_heads(rows, CLASSES, [wild, config])
    [alone] = fit_heads(rows, CLASSES, [config])
    assert diverged.diverged
    assert not healthy.diverged
    torch.testing.assert_close(healthy.head.weight, alone.head.weight, atol=1e-5, rtol=1e-4)


def test_heads_of_a_bank_share_what_they_must(rows, config):
    with pytest.raises(InputError, match=r"batch_size: 32 and 64 found; heads of one bank share one value"):
        fit_heads(rows, CLASSES, [config, replace(config, batch_size=64)])


def test_a_batch_larger_than_the_split_is_the_split(rows, config):
    [fitted] = fit_heads(rows, CLASSES, [replace(config, batch_size=4096)])
    assert fitted.config.batch_size == 150


def test_top5_needs_five_classes(config):
    rows = {"train": (torch.eye(3).repeat(4, 1), torch.arange(3).repeat(4))}
    with pytest.raises(InputError, match="select: top5 found, but only 3 classes"):
        fit_heads(rows, 3, [replace(config, select="top5")])


def _steps(rows, config):
    start = initialized_head(config, DIMS, [str(label) for label in range(CLASSES)], None)
    return Fit(rows, CLASSES, [config], start, Processes(torch.device("cpu")), None).epochs.steps


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_a_normalised_head_learns_whatever_the_scale_of_the_features(scale):
    features, labels = load_wine(return_X_y=True)  # columns from 0.1 to 1,680
    rows = (torch.from_numpy(features * scale).float(), torch.from_numpy(labels))
    config = TrainConfig(head="norm_linear", epochs=60, batch_size=32, device="cpu")
    [fitted] = fit_heads({"train": rows, "val": rows}, 3, [config])
    peer = make_pipeline(StandardScaler(), LogisticRegression()).fit(features, labels).score(features, labels)
    assert fitted.val.top1 >= peer - 0.03
