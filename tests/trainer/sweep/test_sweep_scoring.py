"""Scores of chosen heads, and the paired test, beside scikit-learn's and the closed form."""

import math

import pytest
import torch
from sklearn.metrics import log_loss, top_k_accuracy_score

from headsmith.models.heads import Linear
from headsmith.trainer import TrainConfig
from headsmith.trainer.sweep.scoring import mcnemar, paired_tests, score


def test_mcnemar_is_the_binomial_tail():
    ranks = torch.tensor([0] * 9 + [3] + [0] * 40 + [7] * 5)
    others = torch.tensor([1] * 9 + [0] + [0] * 40 + [7] * 5)
    tail = sum(math.comb(10, row) for row in range(2)) / 2**10
    assert mcnemar(ranks, others, 1) == {"only_first": 9, "only_second": 1, "p": pytest.approx(2 * tail)}
    assert mcnemar(others, ranks, 1)["p"] == pytest.approx(2 * tail)


def test_rows_that_both_have_right_or_wrong_do_not_count():
    same = torch.tensor([0, 0, 4, 9])
    assert mcnemar(same, same, 1) == {"only_first": 0, "only_second": 0, "p": 1.0}
    assert mcnemar(torch.tensor([4, 0]), torch.tensor([3, 1]), 5)["p"] == 1.0


def test_top5_is_not_tested_where_it_cannot_be_wrong():
    ranks = torch.tensor([0, 1])
    assert set(paired_tests(ranks, ranks, 5)) == {"top1"}
    assert set(paired_tests(ranks, ranks, 6)) == {"top1", "top5"}


def test_scores_are_scikit_learns(digits):
    features, labels = digits.arrays("val")
    head = Linear(64, 10)
    torch.nn.init.normal_(head.weight, generator=torch.Generator().manual_seed(0))
    config = TrainConfig(select="top5", p_k=(1.0,), device="cpu")
    found, ranks = score(head, config, features, labels)
    logits = head(features).detach().numpy()
    for k in (1, 5):
        expected = top_k_accuracy_score(labels, logits, k=k)
        assert found[f"top{k}"] == pytest.approx(expected)
        assert float((ranks < k).double().mean()) == pytest.approx(expected)
    assert found["score"] == found["top5"]
    assert found["loss"] == pytest.approx(log_loss(labels, torch.from_numpy(logits).double().softmax(1)), rel=1e-5)
