"""One temperature: it is the best one, it never hurts on what it was fitted to, and it stands in the weights."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.calibration import calibration_curve
from sklearn.metrics import log_loss

from headsmith.export.temperature import TemperatureScaled, confidence, fit_temperature
from headsmith.models import build_head


def drawn(seed, n=400, classes=5, scale=1.0):
    """Logits whose softmax at ``scale`` times their size gave the labels."""
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(n, classes)) * 3
    labels = [generator.choice(classes, p=row) for row in softmax(logits, axis=1)]
    return torch.from_numpy(logits * scale).float(), torch.tensor(labels)


def likelihood(logits, labels, temperature=1.0):
    return log_loss(labels, softmax(logits.double().numpy() / temperature, axis=1), labels=range(logits.shape[1]))


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_one_that_a_peer_finds(seed):
    logits, labels = drawn(seed)

    def loss(inverse):
        return -log_softmax(logits.double().numpy() * inverse, axis=1)[np.arange(len(labels)), labels].mean()

    assert fit_temperature(logits, labels) == pytest.approx(1 / minimize(loss, 1.0, tol=1e-10).x[0], rel=1e-3)


@pytest.mark.parametrize("scale", [0.1, 0.5, 3.0, 20.0])
def test_a_known_factor_comes_back(scale):
    assert fit_temperature(*drawn(0, n=4000, scale=scale)) == pytest.approx(scale, rel=0.05)
    reference = fit_temperature(*drawn(0))
    assert fit_temperature(*drawn(0, scale=scale)) == pytest.approx(scale * reference, rel=1e-3)


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 4), st.floats(0.01, 50))
def test_the_likelihood_never_falls(seed, n, classes, size):
    generator = np.random.default_rng(seed)
    logits = torch.from_numpy(generator.normal(size=(n, classes)) * size).float()
    labels = torch.from_numpy(generator.integers(0, classes, n))
    temperature = fit_temperature(logits, labels)
    assert 0.01 <= temperature <= 100
    assert confidence(logits / temperature, labels).nll <= confidence(logits, labels).nll * (1 + 1e-6)
    ranks, others = (torch.argsort(one, dim=1, stable=True) for one in (logits, logits / temperature))
    assert (ranks == others).all()


def test_rows_that_are_all_right_have_no_best_temperature():
    assert fit_temperature(torch.eye(3), torch.arange(3)) == 1.0


def test_confidence_is_what_a_peer_measures():
    logits, labels = drawn(1, n=2000, scale=2.0)
    found = confidence(logits, labels)
    probabilities = softmax(logits.numpy(), axis=1)
    right, top = probabilities.argmax(1) == labels.numpy(), probabilities.max(1)
    accuracies, confidences = calibration_curve(right, top, n_bins=15)
    weights = np.histogram(top, 15, (0, 1))[0]
    expected = (weights[weights > 0] * np.abs(accuracies - confidences)).sum() / len(labels)
    assert found.n == 2000
    assert found.ece == pytest.approx(expected, rel=1e-5)
    assert found.nll == pytest.approx(likelihood(logits, labels), rel=1e-5)


@pytest.mark.parametrize("kind", ["linear", "norm_linear", "cosine", "mlp"])
def test_every_head_takes_it_into_its_weights(kind):
    head = build_head(kind, 16, 5)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(0))
    features = torch.randn(32, 16, generator=torch.Generator().manual_seed(1))
    tempered = TemperatureScaled(head, 2.5)
    torch.testing.assert_close(tempered(features), head(features) / 2.5)
    torch.testing.assert_close(tempered.folded()(features), head(features) / 2.5, rtol=1e-4, atol=1e-4)
    assert (tempered.inner.weight == head.weight).all()
    assert "temperature" not in str(tempered.folded().state_dict().keys())
