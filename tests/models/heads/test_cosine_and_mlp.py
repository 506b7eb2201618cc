"""The heads that are not affine: values, and that each of them learns from its start."""

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from headsmith.models.heads import HEADS, MLP, Cosine, build_head


def test_logits_are_ten_cosines_at_first():
    head = Cosine(3, 2)
    head.weight.data = torch.tensor([[2.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    found = head(torch.tensor([[0.0, 5.0, 0.0], [1e-4, 0.0, 0.0]]))
    torch.testing.assert_close(found, torch.tensor([[0.0, 50**0.5], [10.0, 50**0.5]]))


def test_a_zero_feature_is_finite():
    head = Cosine(4, 3)
    features = torch.zeros(2, 4, requires_grad=True)
    logits = head(features)
    nn.functional.cross_entropy(logits, torch.tensor([0, 2])).backward()
    assert logits.tolist() == [[0, 0, 0]] * 2
    assert all(torch.isfinite(part.grad).all() for part in (features, *head.parameters()))


def test_zero_weights_are_finite_and_learn():
    head = Cosine(4, 3)
    nn.init.zeros_(head.weight)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
    features, labels = torch.eye(4)[:3], torch.arange(3)
    for _ in range(100):
        loss = nn.functional.cross_entropy(head(features), labels)
        optimizer.zero_grad()
        loss.backward()
        assert all(parameter.grad.abs().max() < 1e5 for parameter in head.parameters())
        optimizer.step()
    assert loss < 0.01


def test_half_features_do_not_overflow():
    assert torch.isfinite(Cosine(4096, 2)(torch.full((1, 4096), 6e4).half())).all()


def test_mlp_is_that_of_torch():
    head = MLP(6, 4, hidden=5)
    nn.init.normal_(head.weight)
    nn.init.normal_(head.inner_bias)
    reference = nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 4))
    values = (head.inner_weight, head.inner_bias, head.weight, head.bias)
    reference.load_state_dict(dict(zip(reference.state_dict(), values, strict=True)))
    features = torch.randn(9, 6)
    torch.testing.assert_close(head(features), reference(features))


def test_mlp_starts_with_equal_classes_and_units_of_unit_size():
    head, features = MLP(500, 4), torch.randn(64, 500)
    assert head(features).abs().max() == 0
    inner = features @ head.inner_weight.T
    assert inner.std().item() == pytest.approx(2**0.5, rel=0.02)


@pytest.mark.parametrize("kind", HEADS)
def test_every_kind_learns_digits(kind):
    """Logistic regression has 96 to 97 % on these."""
    features, labels = (torch.from_numpy(part) for part in load_digits(return_X_y=True))
    features = features.float() / 16
    train, test = torch.arange(len(labels)) % 4 > 0, torch.arange(len(labels)) % 4 == 0
    head = build_head(kind, 64, 10, seed=1, **({"hidden": 64} if kind == "mlp" else {}))
    if kind == "norm_linear":
        head.fit_statistics(features[train].mean(0), features[train].std(0))
    optimizer = torch.optim.Adam(head.parameters(), lr=0.02)
    for _ in range(60):
        loss = nn.functional.cross_entropy(head(features[train]), labels[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    accuracy = (head(features[test]).argmax(1) == labels[test]).float().mean()
    assert accuracy > 0.93
