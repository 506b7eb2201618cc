"""What feature sets and runs say of their backbone."""

from typing import Any, NotRequired, TypedDict


class KnownBackbone(TypedDict):
    """What tells backbones apart; of features of anywhere else no more is known."""

    spec: str
    weights_sha256: str
    feature_dim: NotRequired[int]
    preprocessing: NotRequired[dict[str, Any]]


class BackboneRecord(TypedDict):
    """What `Backbone.record` gives: enough to build it again.

    ``file``, ``layer`` and ``drop_background`` are of ONNX files only.
    """

    spec: str
    checkpoint: str | None
    image_size: int | None
    feature_dim: int
    weights_sha256: str
    preprocessing: dict[str, Any]
    probe: list[float]
    file: NotRequired[str]
    layer: NotRequired[str | None]
    drop_background: NotRequired[bool]
