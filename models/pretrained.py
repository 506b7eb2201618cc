"""The classifier that a backbone was trained with."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..core.errors import InputError
from .backbone import PROBE_TOLERANCE, Backbone
from .class_names import ClassNames


class Pretrained(NamedTuple):
    """A network's own last layer, as an affine function of the backbone's features.

    Attributes:
        weight: ``(C, D)`` float32.
        bias: ``(C,)`` float32.
        names: See `headsmith.models.class_names`; ``None`` where nobody says what the outputs are.
    """

    weight: Tensor
    bias: Tensor
    names: ClassNames | None


def backbone_classifier(backbone: Backbone) -> Pretrained:
    """The last layer of the network that a backbone was cut from.

    Raises:
        InputError: The network has none, or it is not one affine function of the features.
    """
    layer, spec = backbone.source.classifier, backbone.request.spec
    if not isinstance(layer, nn.Linear) or layer.in_features != backbone.feature_dim:
        raise InputError(
            f"backbone {spec}: its own classifier is a {type(layer).__name__}, expected one Linear layer on its "
            f"{backbone.feature_dim} features; start from zeros"
        )
    weight = layer.weight.detach().float()
    bias = torch.zeros(len(weight)) if layer.bias is None else layer.bias.detach().float()
    _check_affine(backbone, layer, spec)
    names = backbone.source.class_names()
    known = names is not None and len(names[0]) == len(weight)
    return Pretrained(weight.clone(), bias.clone(), names if known else None)


@torch.inference_mode()
def _check_affine(backbone: Backbone, layer: nn.Linear, spec: str) -> None:
    """A layer that still stands in its network must give, from the features, what the network gives."""
    if not any(module is layer for module in backbone.network.modules()):
        return
    expected, found = backbone.network(backbone.pattern())[0], layer(backbone.probe)
    if found.shape != expected.shape or not torch.allclose(found, expected, atol=PROBE_TOLERANCE, rtol=PROBE_TOLERANCE):
        raise InputError(f"backbone {spec}: its own classifier does more than one product; start from zeros")
