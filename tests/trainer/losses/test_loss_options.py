"""The options of a loss: defined once, checked once, carried as one and, into a compiled graph, as text."""

import inspect
from dataclasses import fields
from typing import get_type_hints

import numpy as np
import pytest

from headsmith.trainer.loss_options import LossKeywords
from headsmith.trainer.losses import LossOptions, TopKCrossEntropy, linear_topk_cross_entropy, topk_cross_entropy
from headsmith.trainer.losses.cached_options import loss_options

OPTIONS = {field.name: field for field in fields(LossOptions)}


def test_the_types_of_the_keywords_are_those_of_the_options():
    assert get_type_hints(LossKeywords) == get_type_hints(LossOptions)


@pytest.mark.parametrize("function", [topk_cross_entropy, TopKCrossEntropy, linear_topk_cross_entropy])
def test_public_functions_spell_every_option_out(function):
    parameters = inspect.signature(function).parameters
    for name, option in OPTIONS.items():
        if name != "inplace" or function is not linear_topk_cross_entropy:
            assert parameters[name].default == option.default
            assert f"{name}: {option.metadata['text'][:40]}" in function.__doc__


def test_equal_options_are_built_once():
    assert loss_options(m=7) is loss_options(m=7)
    assert loss_options(m=7) != loss_options(m=8)


@pytest.mark.parametrize("m", [[7], 7.0, True])
def test_what_equals_a_good_value_and_what_cannot_be_hashed_is_still_refused(m):
    loss_options(m=7)
    loss_options(m=1)
    with pytest.raises(ValueError, match="m: .* found, expected None or a whole number"):
        loss_options(m=m)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"m": None, "sinkhorn_tolerance": float("inf"), "inplace": True},
        {"m": np.int64(3), "floor": np.float32(0.1), "inverse_temperature": np.float64(1 / 3)},
    ],
)
def test_as_text_and_back(options):
    asked = LossOptions(**options)
    assert LossOptions.from_text(asked.to_text()) == asked


def test_numbers_of_numpy_become_pythons():
    """Triton tells the type of an argument by Python's own numbers."""
    options = LossOptions(m=np.int64(5), inverse_temperature=np.float32(0.5), floor=0)
    assert (type(options.m), type(options.inverse_temperature), type(options.floor)) == (int, float, float)
