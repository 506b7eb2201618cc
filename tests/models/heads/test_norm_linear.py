"""Standardisation against scikit-learn's, layer norm against torch's, and both folded into the weights."""

import pytest
import torch
from sklearn.preprocessing import StandardScaler, normalize
from torch import nn

from headsmith.core.errors import InputError
from headsmith.models.heads import MLP, Cosine, Linear, NormLinear, build_head


def filled(norm, in_features=6, num_classes=4):
    torch.manual_seed(0)
    head = NormLinear(in_features, num_classes, norm=norm).double()
    for parameter in head.parameters():
        nn.init.normal_(parameter)
    return head


def test_standard_is_that_of_scikit_learn():
    features = torch.randn(50, 6, dtype=torch.float64) * torch.arange(1, 7) + 3
    scaler = StandardScaler().fit(features.numpy())
    head = filled("standard")
    head.fit_statistics(torch.from_numpy(scaler.mean_), torch.from_numpy(scaler.scale_))
    expected = torch.from_numpy(scaler.transform(features.numpy()))
    torch.testing.assert_close(head.normalised(features), expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(head(features), expected @ head.weight.T + head.bias, atol=1e-12, rtol=0)


def test_layer_is_that_of_torch():
    head, features = filled("layer"), torch.randn(5, 6, dtype=torch.float64)
    reference = nn.Sequential(nn.LayerNorm(6, eps=1e-6), nn.Linear(6, 4)).double()
    values = {"0.weight": head.scale, "0.bias": head.shift, "1.weight": head.weight, "1.bias": head.bias}
    reference.load_state_dict(values)
    torch.testing.assert_close(head(features), reference(features), atol=1e-12, rtol=0)


def test_standard_folds_into_a_linear_head():
    head, features = filled("standard"), torch.randn(9, 6, dtype=torch.float64) * 5 + 100
    head.fit_statistics(features.mean(0), features.std(0))
    folded = head.folded()
    assert type(folded) is Linear
    torch.testing.assert_close(folded(features), head(features), atol=1e-10, rtol=0)


def test_layer_folds_its_scale_and_shift():
    head, features = filled("layer"), torch.randn(9, 6, dtype=torch.float64)
    folded = head.folded()
    assert {name for name, _ in folded.named_parameters()} == {"weight", "bias"}
    torch.testing.assert_close(folded(features), head(features), atol=1e-10, rtol=0)
    assert folded.folded()(features).equal(folded(features))


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_unit_is_the_length_one_of_scikit_learn(scale):
    head, features = filled("unit"), scale * torch.randn(5, 6, dtype=torch.float64)
    torch.testing.assert_close(head.normalised(features), torch.from_numpy(normalize(features)), atol=1e-12, rtol=0)
    assert head.normalised(torch.zeros(1, 6)).tolist() == [[0] * 6]


def test_cosine_folds_into_a_linear_head_on_unit_features():
    head, features = Cosine(6, 4).double(), torch.randn(9, 6, dtype=torch.float64)
    folded = head.folded()
    assert (folded.kind, folded.options) == ("norm_linear", {"norm": "unit"})
    torch.testing.assert_close(folded(features), head(features), atol=1e-10, rtol=0)


def test_other_heads_fold_into_themselves():
    for head in (Linear(3, 2), MLP(3, 2), filled("unit")):
        assert head.folded() is head


def test_statistics_do_not_change_the_function():
    head, features = filled("standard"), torch.randn(9, 6, dtype=torch.float64)
    before = head(features)
    head.fit_statistics(torch.randn(6), torch.rand(6) + 0.1)
    torch.testing.assert_close(head(features), before, atol=1e-10, rtol=0)


@pytest.mark.parametrize("bank", [None, 2])
def test_it_starts_from_a_classifier_before_or_after_its_statistics(bank):
    classifier, features = nn.Linear(6, 4), torch.randn(9, 6) * 3 + 7
    for order in (0, 1):
        head = NormLinear(6, 4, bank=bank)
        steps = [
            lambda head: head.start_from(classifier.weight, classifier.bias),
            lambda head: head.fit_statistics(features.mean(0), features.std(0)),
        ]
        for step in (steps[order], steps[1 - order]):
            step(head)
        logits = head(features) if bank is None else head(features)[1]
        torch.testing.assert_close(logits, classifier(features), atol=1e-4, rtol=0)


def test_constant_features_do_not_blow_up():
    head = NormLinear(3, 2)
    head.fit_statistics(torch.tensor([1.0, 5.0, 0.0]), torch.tensor([2.0, 0.0, 1.0]))
    found = head.normalised(torch.tensor([[3.0, 5.0, 1.0], [1.0, 6.0, 0.0]]))
    assert found[0].tolist() == [1, 0, 1]
    assert 100 < found[1, 1] < 1000
    head.fit_statistics(torch.ones(3), torch.zeros(3))
    assert head.normalised(torch.full((1, 3), 2.0)).tolist() == [[1, 1, 1]]


def test_half_features_are_normalised_in_float32():
    head = NormLinear(2, 2)
    head.fit_statistics(torch.tensor([1000.0, 0.0]), torch.tensor([0.5, 1.0]))
    found = head.normalised(torch.tensor([[1000.5, 2.0]]).half())
    assert found.dtype == torch.float16
    assert found.tolist() == [[1, 2]]


def test_options_that_are_none():
    with pytest.raises(InputError, match="norm: 'batch' is not known; expected one of standard, layer, unit"):
        NormLinear(3, 2, norm="batch")
    with pytest.raises(InputError, match="head linear: options .*'norm'.* do not fit it"):
        build_head("linear", 3, 2, norm="layer")
    with pytest.raises(InputError, match="hidden: 0 found"):
        build_head("mlp", 3, 2, hidden=0)
    with pytest.raises(InputError, match="head: 'lienar' is not known; expected one of linear"):
        build_head("lienar", 3, 2)
    with pytest.raises(ValueError, match="no statistics"):
        NormLinear(3, 2, norm="layer").fit_statistics(torch.zeros(3), torch.ones(3))
    for head in (NormLinear(3, 2, norm="layer"), Cosine(3, 2)):
        with pytest.raises(InputError, match="cannot start from an affine classifier"):
            head.start_from(torch.zeros(2, 3), torch.zeros(2))
