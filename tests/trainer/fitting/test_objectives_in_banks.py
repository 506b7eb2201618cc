"""Every objective trains: alone, beside heads of other losses, and after an interruption."""

from dataclasses import replace

import torch

from headsmith.trainer import TrainConfig
from headsmith.trainer.fitting import fit_heads
from headsmith.trainer.loss_methods import OBJECTIVE, modules_of

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
