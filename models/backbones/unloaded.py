"""How large a backbone and its features are, without its weights."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import timm
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from ...core.errors import InputError
from ..backbone_sources import LITE0, count_weights, torchvision_without_weights
from ..onnx_graph import affine_weights, cut, find_last_layer, only_input, parameter_count, read_onnx
from ..onnx_graph.layout import layout_of
from .libraries import TIMM, TORCHVISION


class Size(NamedTuple):
    """A backbone's size.

    Attributes:
        parameters: How many weights its features depend on: without the classifier that is cut off.
        feature_dim: D.
    """

    parameters: int
    feature_dim: int


class _WithoutValues(TorchFunctionMode):
    """Makes tensors that a network will fill without memory; those that it computes with while it is built have it."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        device = {"device": "meta"} if func in (torch.empty, torch.zeros, torch.ones) else {}
        return func(*args, **(kwargs or {}) | device)


def size_of(spec: str) -> Size:
    """Build a network without memory for its weights, which takes about a tenth of a second.

    Args:
        spec: ``lite0``, ``timm:NAME`` or ``torchvision:NAME[/WEIGHTS]``, which its library knows.
    """
    if spec.startswith(TORCHVISION):
        with _WithoutValues():
            cut_network, layer = torchvision_without_weights(spec.removeprefix(TORCHVISION))
        width = layer.in_features if isinstance(layer, nn.Linear) else layer.in_channels
        return Size(count_weights(cut_network), width)
    with torch.device("meta"):
        network: Any = timm.create_model(spec.removeprefix(TIMM) if spec.startswith(TIMM) else LITE0)
    return Size(count_weights(network) - count_weights(network.get_classifier()), network.head_hidden_size)


def size_of_onnx(path: Path) -> tuple[Size, tuple[int, int] | None]:
    """The same of an ONNX file, which is read without its weights; and the images that it takes.

    Returns:
        The size; ``(height, width)`` in pixels, or nothing where the file does not say it.

    Raises:
        InputError: It cannot be read, takes no images, or its last layer is not found.
    """
    model, where = read_onnx(path), str(path)
    layer, images = find_last_layer(model, where, None), only_input(model, where)
    feature_dim = affine_weights(model, layer, where)[0].shape[1]
    shape = [size if isinstance(size, int) else None for size in images.shape or ()]
    if len(shape) != 4:
        raise InputError(f"{where}: input {images.name} has the shape {images.shape}, expected four axes")
    height, width = shape[1:3] if layout_of(shape) == "nhwc" else shape[2:]
    edges = (height, width) if height and width else None
    return Size(parameter_count(cut(model, layer, where)), feature_dim), edges
