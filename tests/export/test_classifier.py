"""The classifier module: ties, sizes, formats, and that originals stay as they were."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import nn

from headsmith.core.errors import InputError
from headsmith.export import Classifier
from headsmith.models import Linear, load_backbone


def identity_head(classes):
    head = Linear(classes, classes)
    with torch.no_grad():
        head.weight.copy_(torch.eye(classes))
    return head


@pytest.fixture(scope="module")
def backbone(tiny_backbone):
    return load_backbone(
        tiny_backbone.backbone, checkpoint=tiny_backbone.checkpoint, image_size=tiny_backbone.image_size
    )


@given(arrays(np.float32, st.tuples(st.integers(1, 5), st.just(7)), elements=st.integers(-2, 2).map(np.float32)))
def test_equal_logits_put_the_lower_index_first(logits):
    answer = Classifier(identity_head(7))(torch.from_numpy(logits))
    expected = [sorted(range(7), key=lambda index: (-row[index], index))[:5] for row in logits]
    assert answer.topk_indices.tolist() == expected


def test_scores_are_softmax_probabilities():
    answer = Classifier(identity_head(3))(torch.tensor([[1.0, 2.0, 5.0]]).log())
    np.testing.assert_allclose(answer.topk_scores.numpy(), [[5 / 8, 2 / 8, 1 / 8]], rtol=1e-6)
    assert answer.topk_indices.tolist() == [[2, 1, 0]]


def test_huge_logits_do_not_overflow():
    answer = Classifier(identity_head(2))(torch.tensor([[3e4, -3e4]]))
    assert answer.topk_scores.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(("classes", "k"), [(2, 2), (5, 5), (6, 5)])
def test_k_is_five_or_all_classes(classes, k):
    answer = Classifier(Linear(4, classes))(torch.zeros(3, 4))
    assert answer.topk_indices.shape == answer.topk_scores.shape == (3, k)
    assert answer.topk_indices.dtype == torch.int64


def test_both_pixel_formats_give_the_same(backbone):
    head = Linear(backbone.feature_dim, 6)
    nn.init.normal_(head.weight, generator=torch.Generator().manual_seed(0))
    pixels = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8))
    nhwc = Classifier(head, backbone, "uint8-nhwc")(pixels).logits
    nchw = Classifier(head, backbone)(pixels.permute(0, 3, 1, 2).float()).logits
    torch.testing.assert_close(nhwc, nchw, rtol=0, atol=1e-6)


def test_normalisation_is_inside(backbone):
    """A uniform image of 128 under mean = std = 0.5 reaches the network as 0.003922."""
    assert backbone.preprocessing.mean == backbone.preprocessing.std == (0.5, 0.5, 0.5)
    normalise = Classifier(Linear(backbone.feature_dim, 6), backbone).body[0]
    fed = normalise(torch.full((1, 3, 4, 4), 128.0))
    np.testing.assert_allclose(fed.numpy(), 0.003922, atol=5e-7)


def test_originals_are_not_touched(backbone):
    head = Linear(backbone.feature_dim, 6)
    before = [module.inplace for module in backbone.modules() if hasattr(module, "inplace")]
    classifier = Classifier(head, backbone)
    assert any(before)
    assert [module.inplace for module in backbone.modules() if hasattr(module, "inplace")] == before
    assert not any(getattr(module, "inplace", False) for module in classifier.modules())
    assert all(parameter.requires_grad for parameter in head.parameters())
    assert not any(parameter.requires_grad for parameter in classifier.parameters())


def test_a_head_of_another_width_is_refused(backbone):
    with pytest.raises(InputError, match="head takes 5 features, the backbone gives 96"):
        Classifier(Linear(5, 6), backbone)
