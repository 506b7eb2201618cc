"""A bank of heads is its heads, side by side: forward, gradients, start."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headsmith.models.heads import HEADS, Linear, build_head

SIZES = st.integers(1, 6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, deadline=None)
@given(st.integers(1, 4), SIZES, st.integers(2, 6), SIZES)
def test_a_bank_is_its_members(random_head, heads, rows, features, classes):
    bank = random_head(features, classes, bank=heads)
    x = torch.randn(rows, features, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    logits = bank(x)
    assert logits.shape == (heads, rows, classes)
    assert all(part.is_contiguous() for part in logits)
    weights = torch.randn(logits.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    (logits * weights).sum().backward()
    for index in range(heads):
        single = bank.member(index)
        expected = single(x)
        torch.testing.assert_close(logits[index], expected, atol=1e-12, rtol=1e-12)
        (expected * weights[index]).sum().backward()
        for name, parameter in single.named_parameters():
            found = bank.get_parameter(name).grad[index]
            torch.testing.assert_close(found, parameter.grad, atol=1e-12, rtol=1e-12)


def test_a_member_is_a_copy(random_head):
    bank = random_head(bank=2)
    member = bank.member(1).eval()
    before = {name: part.clone() for name, part in bank.state_dict().items()}
    for parameter in member.parameters():
        parameter.data += 1
    assert all(torch.equal(part, before[name]) for name, part in bank.state_dict().items())
    assert member.bank is None
    assert all(parameter.requires_grad for parameter in member.parameters())
    with pytest.raises(ValueError, match="no members"):
        member.member(0)


@pytest.mark.parametrize("kind", HEADS)
def test_the_heads_of_a_fresh_bank_are_those_of_the_same_seed(kind):
    bank, single, other = (
        build_head(kind, 5, 4, bank=bank, seed=seed) for bank, seed in ((3, 7), (None, 7), (None, 8))
    )
    for index in range(3):
        state = bank.member(index).state_dict()
        assert all(torch.equal(part, single.state_dict()[name]) for name, part in state.items())
    random = kind in ("cosine", "mlp")
    assert random == any(not torch.equal(part, single.state_dict()[name]) for name, part in other.state_dict().items())


def test_classes_in_another_order(random_head):
    head, x = random_head(), torch.randn(3, 7, dtype=torch.float64)
    order = [4, 0, 3, 1, 2]
    torch.testing.assert_close(head.with_classes(order)(x), head(x)[:, order], atol=1e-12, rtol=0)


def test_only_what_is_asked_for_gets_a_gradient():
    for asked in ("weight", "bias"):
        head = Linear(3, 2, bank=2).requires_grad_(False)
        head.get_parameter(asked).requires_grad_()
        head(torch.randn(4, 3)).sum().backward()
        assert {name for name, parameter in head.named_parameters() if parameter.grad is not None} == {asked}
