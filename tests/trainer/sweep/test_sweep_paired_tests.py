"""Scores of chosen heads, and the paired test, beside scikit-learn's and the closed form."""

import pytest
import torch
from sklearn.metrics import log_loss, top_k_accuracy_score

from headsmith.models.heads import Linear
from headsmith.trainer import TrainConfig
from headsmith.trainer.sweep.paired_tests import adjusted, paired_tests, score
from headsmith.trainer.sweep.sweep_record import PairedTest


def test_p_by_holm_is_over_all_measures_of_all_groups():
    p_values = [{"top1": 0.01, "top5": 0.02}, {}, {"top1": 0.5, "top5": 0.03}]
    tests = [{name: PairedTest(1, 2, p) for name, p in one.items()} for one in p_values]
    found = [{name: test.p_holm for name, test in one.items()} for one in adjusted(tests)]
    assert found == [
        {"top1": pytest.approx(0.04), "top5": pytest.approx(0.06)},
        {},
        {"top1": pytest.approx(0.5), "top5": pytest.approx(0.06)},
    ]


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
        assert getattr(found, f"top{k}") == pytest.approx(expected)
        assert float((ranks < k).double().mean()) == pytest.approx(expected)
    assert found.score == found.top5
    assert found.loss == pytest.approx(log_loss(labels, torch.from_numpy(logits).double().softmax(1)), rel=1e-5)
