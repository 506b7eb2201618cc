"""Bad input of `linear_topk_cross_entropy`: one line that names the argument."""

import pytest
import torch
from loss_messages import LABELS, assert_message

from headsmith.trainer.losses import (
    linear_topk_cross_entropy,
)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"weight": torch.zeros(7, 4)}, ["(4, 3)", "(7, 4)", "(C, D)"]),
        ({"features": torch.zeros(4)}, ["(4,)", "(B, D)"]),
        ({"bias": torch.zeros(6)}, ["bias", "(6,)", "(7,)"]),
        (
            {"features": torch.zeros(4, 3, dtype=torch.float64)},
            ["weight: found torch.float32", "torch.float64 as"],
        ),
        ({"bias": torch.zeros(7, device="meta")}, ["bias is on meta", "features on cpu"]),
        ({"labels": torch.zeros(5, dtype=torch.int64)}, ["labels", "(5,)", "(4, 7)"]),
        ({"class_weight": torch.ones(3)}, ["class_weight has shape (3,)", "(7,)"]),
        ({"class_weight": torch.ones(7, requires_grad=True)}, ["class_weight requires a gradient", "detach()"]),
        ({"labels": torch.full((4, 7), 1 / 7, requires_grad=True)}, ["labels requires a gradient", "detach()"]),
        ({"sample_p_k": torch.ones(3, 1)}, ["sample_p_k has shape (3, 1)", "(4, K)"]),
        ({"chunk_rows": -1}, ["chunk_rows: -1 found", "at least 1"]),
        ({"chunk_rows": 0}, ["chunk_rows: 0 found", "at least 1"]),
        ({"chunk_rows": 2.5}, ["chunk_rows: 2.5 found", "whole number"]),
        ({"reduction": "average"}, ["reduction", "'average'"]),
        ({"p_k": [0.5, 0.6]}, ["p_k", "1.1"]),
        ({"method": "soft_sort"}, ["did you mean softsort"]),
    ],
)
def test_linear(arguments, parts):
    assert_linear_refuses(ValueError, arguments, parts)


@pytest.mark.parametrize("keyword", ["inplace", "fancy"])
def test_unknown_keyword_of_linear(keyword):
    assert_linear_refuses(
        TypeError, {keyword: True}, [f"{keyword}: no keyword of linear_topk_cross_entropy", "inverse_temperature"]
    )


def test_label_of_a_later_chunk_is_counted_from_the_first_row():
    arguments = {"labels": torch.tensor([0, 1, 2, 7]), "chunk_rows": 2}
    assert_linear_refuses(IndexError, arguments, ["label 7 in row 3", "0..6"])


def assert_linear_refuses(error, arguments, parts):
    usual = {"features": torch.zeros(4, 3), "weight": torch.zeros(7, 3), "bias": None, "labels": LABELS}
    with pytest.raises(error) as excinfo:
        linear_topk_cross_entropy(**(usual | arguments))
    assert_message(excinfo, *parts)
