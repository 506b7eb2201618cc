from pathlib import Path

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.metrics import top_k_accuracy_score

from headsmith.trainer.fitting.label_ranks import label_ranks

few_values = st.sampled_from([-1.0, 0.0, 0.5, 2.0, float("inf"), float("-inf")])  # ties are the rule


@given(arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=few_values), st.data())
def test_rank_is_the_place_in_a_stable_descending_sort(logits, data):
    rows, classes = logits.shape
    labels = data.draw(arrays(np.int64, rows, elements=st.integers(0, classes - 1)))
    order = np.argsort(-logits, axis=1, kind="stable")
    expected = [int(np.flatnonzero(order[row] == labels[row])[0]) for row in range(rows)]
    assert label_ranks(torch.from_numpy(logits), torch.from_numpy(labels)).tolist() == expected


def test_accuracy_equals_scikit_learn():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(500, 20, generator=generator)
    labels = torch.randint(0, 20, (500,), generator=generator)
    ranks = label_ranks(logits, labels)
    for k in (1, 3, 5):
        expected = top_k_accuracy_score(labels, logits, k=k, labels=range(20))
        assert float((ranks < k).double().mean()) == expected


def test_a_row_with_nan_has_its_label_last():
    logits = torch.tensor([[float("nan"), 5.0, 1.0], [0.0, 5.0, 1.0]])
    assert label_ranks(logits, torch.tensor([1, 1])).tolist() == [3, 0]


def test_the_kernel_that_replaces_it_on_a_gpu(under_the_interpreter):
    assert "10 passed" in under_the_interpreter(Path(__file__).with_name("interpreted_accuracy.py"))
