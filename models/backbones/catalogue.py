"""What can be used as a backbone, and what is known of it before it is loaded."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.arguments import typed
from ...core.errors import InputError
from .libraries import ONNX, TIMM, TORCHVISION
from .lists import backbone_lists, expand_backbones
from .published import imagenet_accuracy
from .weights_here import Weights, where_weights_are

MEASURED = 100


@dataclass(frozen=True)
class BackboneInfo:
    """A backbone that can be used.

    Attributes:
        name: As `headsmith.load_backbone` takes it.
        lists: The lists of headsmith that hold it.
        parameters: How many weights its features depend on; ``None`` where more than 100 backbones are listed.
        image_size: ``(height, width)`` in pixels; ``None`` where an ONNX file or its library does not say it.
        feature_dim: D; ``None`` as for ``parameters``.
        top1: Accuracy on ImageNet in per cent that its library itself states; ``None`` where it states none.
        license: Of the weights, as timm states it; ``None`` where nobody states one.
        weights: Where they are.
        problem: Why an ONNX file cannot be used.
    """

    name: str
    lists: tuple[str, ...]
    parameters: int | None
    image_size: tuple[int, int] | None
    feature_dim: int | None
    top1: float | None
    license: str | None
    weights: Weights
    problem: str | None = None


@typed
def list_backbones(names: Sequence[str] | None = None) -> list[BackboneInfo]:
    """Say what is known of backbones; nothing is downloaded, and no weights are loaded.

    Parameters and the size of features come from building the network, a tenth of a second each, so that they are told
    of at most 100 backbones.

    Args:
        names: See `headsmith.models.backbones.lists.expand_backbones`; all lists of headsmith where none is given.

    Raises:
        InputError: A name that means nothing.
    """
    found = expand_backbones(names or list(backbone_lists()), allow_many=True, argument="names")
    measured = len(found) <= MEASURED
    return [_onnx(name, measured) if name.startswith(ONNX) else _of_library(name, measured) for name in found]


def _of_library(name: str, measured: bool) -> BackboneInfo:
    size = None
    if measured:
        from .unloaded import size_of

        size = size_of(name)
    accuracy = imagenet_accuracy(name)
    image_size, licence = _torchvision(name) if name.startswith(TORCHVISION) else _timm(name)
    return BackboneInfo(
        name=name,
        lists=_lists_with(name),
        parameters=size and size.parameters,
        image_size=image_size,
        feature_dim=size and size.feature_dim,
        top1=accuracy and accuracy.top1,
        license=licence,
        weights=where_weights_are(name),
    )


def _timm(name: str) -> tuple[tuple[int, int] | None, str | None]:
    """Size of images, and the licence."""
    import timm

    from ..backbone_sources import LITE0

    config = timm.get_pretrained_cfg(name.removeprefix(TIMM) if name.startswith(TIMM) else LITE0)
    if config is None:
        return None, None
    _, height, width = config.input_size
    return (height, width), config.license if name.startswith(TIMM) else None


def _torchvision(name: str) -> tuple[tuple[int, int], None]:
    import torchvision

    network, _, tag = name.removeprefix(TORCHVISION).partition("/")
    (edge,) = torchvision.models.get_model_weights(network)[tag or "DEFAULT"].transforms().crop_size
    return (edge, edge), None


def _onnx(name: str, measured: bool) -> BackboneInfo:
    size, image_size, problem = None, None, None
    if measured:
        from .unloaded import size_of_onnx

        try:
            size, image_size = size_of_onnx(Path(name.removeprefix(ONNX)))
        except InputError as error:
            problem = str(error)
    parameters, feature_dim = size or (None, None)
    return BackboneInfo(name, (), parameters, image_size, feature_dim, None, None, Weights.FILE, problem)


def _lists_with(name: str) -> tuple[str, ...]:
    return tuple(one for one, names in backbone_lists().items() if name in names)
