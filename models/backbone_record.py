"""What feature sets, runs and bundles say of their backbone."""

from dataclasses import dataclass, field
from typing import Any, NotRequired, Self, TypedDict

from ..core.json_values import JsonObject
from ..core.records import OPTIONAL
from ..core.typed_json import structured
from .preprocessing import Preprocessing, upgraded_recipe


class KnownBackbone(TypedDict):
    """What tells backbones apart; of features of anywhere else no more is known."""

    spec: str
    weights_sha256: str
    feature_dim: NotRequired[int]
    preprocessing: NotRequired[JsonObject]


@dataclass(frozen=True, kw_only=True)
class BackboneRequest:
    """What `load_backbone` was asked for.

    Attributes:
        spec: ``lite0``, ``timm:NAME``, ``torchvision:NAME[/WEIGHTS]`` or ``onnx:NAME``.
        checkpoint: Local weights.
        image_size: Another crop edge in pixels than the backbone's own.
        checkpoint_sha256: Of local weights.
        file: An ONNX file.
        layer: Its last layer, where that was named.
        drop_background: Whether the first output of an ONNX file is no class.
    """

    spec: str
    checkpoint: str | None = None
    image_size: int | None = None
    checkpoint_sha256: str | None = field(default=None, metadata=OPTIONAL)
    file: str | None = field(default=None, metadata=OPTIONAL)
    layer: str | None = field(default=None, metadata=OPTIONAL)
    drop_background: bool | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class BackboneRecord(BackboneRequest):
    """Enough to build a backbone again, and to see that it is the same.

    Attributes:
        tap: Where the features are taken, in words.
        feature_dim: D.
        weights_sha256: A hash over every parameter and buffer.
        preprocessing: The network's own recipe.
        probe: The first features of a fixed image.
    """

    tap: str
    feature_dim: int
    weights_sha256: str
    preprocessing: Preprocessing
    probe: tuple[float, ...]

    @classmethod
    def of(cls, values: Any) -> Self:
        """Read JSON values.

        Raises:
            DamagedFileError: They are no such record.
        """
        return structured(upgraded_backbone(values), cls, "backbone", advice="extract the features again")


def upgraded_backbone(values: Any) -> Any:
    """The JSON values of a record as this version has them, whatever version wrote them."""
    known = isinstance(values, dict) and "preprocessing" in values
    return values | {"preprocessing": upgraded_recipe(values["preprocessing"])} if known else values
