"""Every objective trains: alone, and beside heads of other losses."""

from dataclasses import replace

import pytest
import torch

from headsmith.trainer import TrainConfig
from headsmith.trainer.fitting import fit_heads
from headsmith.trainer.loss_defaults import OBJECTIVE, modules_of
from headsmith.trainer.losses import topk_cross_entropy

METHODS = tuple(modules_of(OBJECTIVE))
CONFIG = TrainConfig(epochs=3, batch_size=64, device="cpu", p_k=(0.5, 0.0, 0.5), m=5, learning_rate=0.01)


def rows():
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(240) % 8
    features = torch.nn.functional.one_hot(labels, 12) + 0.5 * torch.randn(240, 12, generator=generator)
    return {"train": (features[:160], labels[:160]), "val": (features[160:], labels[160:])}


def test_a_bank_of_all_is_each_alone_and_every_loss_falls():
    configs = [replace(CONFIG, loss=loss, learning_rate=rate) for loss in METHODS for rate in (0.01, 0.03)]
    bank = fit_heads(rows(), 8, configs)
    for config, fitted in zip(configs, bank, strict=True):
        losses = [epoch.loss for epoch in fitted.history]
        assert losses[-1] < losses[0]
        if config.learning_rate == 0.03:
            [alone] = fit_heads(rows(), 8, [config])
            torch.testing.assert_close([epoch.loss for epoch in alone.history], losses)
            torch.testing.assert_close(alone.head.weight, fitted.head.weight, rtol=1e-4, atol=1e-5)


def test_margins_follow_the_rows_of_training():
    """The first step's losses are those of a head of zeros, with the counts of the training labels."""
    features, labels = rows()["train"]
    kept = (labels < 4) | (torch.arange(160) < 40)  # four classes of 20, four of 5
    features, labels = features[kept], labels[kept]
    config = replace(CONFIG, loss="imbalanced_noised_topk", max_margin=2.0, start="zeros", epochs=1, batch_size=1000)
    [fitted] = fit_heads({"train": (features, labels)}, 8, [config])
    options = {"method": config.loss, "p_k": config.p_k, "m": config.m, "max_margin": 2.0}
    counts = torch.bincount(labels)
    assert counts.tolist() == [20] * 4 + [5] * 4
    expected = topk_cross_entropy(torch.zeros(len(labels), 8), labels, class_counts=counts, **options)
    assert fitted.history[0].loss == pytest.approx(expected.item(), rel=1e-5)
    assert expected != topk_cross_entropy(torch.zeros(len(labels), 8), labels, **options)
