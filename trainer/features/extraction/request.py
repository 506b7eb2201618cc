"""What decides the features: the parts that a cache must share to be reused."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Self

from ....core.files import sha256_json
from ....core.json_values import JsonObject
from ....core.records import OPTIONAL, to_json
from ....models.backbone_record import BackboneRecord
from .views import CENTRE, CROPS, view_names

_IN_WORDS = {
    "backbone": "another backbone",
    "weights": "other backbone weights",
    "transform": "another transform (resize, crop, interpolation, mean, std, scale or background)",
    "source": "another source (class names, or the images' ids, labels, splits or bytes)",
    "split_rule": "another way to split",
    "dtype": "another dtype",
    "amp": "another precision of the network (--amp)",
    "views": "other views of the training images (--crops, --flip)",
    "shard_rows": "another size of its parts",
    "shard_columns": "other columns in its parts, as another version of headsmith writes them",
}


AMP_DTYPE = "float16"


@dataclass(frozen=True)
class RequestedBackbone:
    """What is asked of a backbone; where its weights lie and its probe count for nothing.

    Attributes:
        spec: See `BackboneRequest`.
        tap: Where the features are taken, in words.
        feature_dim: D.
    """

    spec: str
    tap: str
    feature_dim: int

    @classmethod
    def of(cls, backbone: BackboneRecord | None) -> Self | None:
        """The parts of a record that decide the features; nothing of features of anywhere else."""
        return None if backbone is None else cls(backbone.spec, backbone.tap, backbone.feature_dim)


@dataclass(frozen=True, kw_only=True)
class Request:
    """The parts that decide the features; what is ``None`` has no key in the file, but for backbone and weights.

    Attributes:
        backbone: What computes them; ``None`` of imported features of an unknown one.
        weights: Hash of its weights.
        transform: Its recipe, as the version that extracted the features wrote it: its hash stays.
        source: Fingerprint of the image set.
        class_names: SHA-256 of imported class names.
        rows: By split, `rows_sha256` of imported rows.
        features: By split, SHA-256 of imported features.
        split_rule: How images or rows came to be divided.
        dtype: ``float16`` or ``float32``.
        amp: The dtype of autocast, where the network ran under it.
        views: Names of the views of a training image, where there are several.
    """

    backbone: RequestedBackbone | None
    weights: str | None
    transform: JsonObject | None = field(default=None, metadata=OPTIONAL)
    source: str | None = field(default=None, metadata=OPTIONAL)
    class_names: str | None = field(default=None, metadata=OPTIONAL)
    rows: dict[str, str] | None = field(default=None, metadata=OPTIONAL)
    features: dict[str, str] | None = field(default=None, metadata=OPTIONAL)
    split_rule: str
    dtype: str
    amp: str | None = field(default=None, metadata=OPTIONAL)
    views: list[str] | None = field(default=None, metadata=OPTIONAL)

    @classmethod
    def of_images(
        cls,
        backbone: BackboneRecord,
        source: str,
        split_rule: str,
        dtype: str,
        *,
        amp: bool = False,
        views: Sequence[str] = (CENTRE,),
    ) -> Self:
        """What an extraction asks for.

        Args:
            backbone: The backbone's record.
            source: Fingerprint of the image set.
            split_rule: How the images came to be divided.
            dtype: ``float16`` or ``float32``.
            amp: Whether the network runs under autocast.
            views: Names of the views of a training image.
        """
        return cls(
            backbone=RequestedBackbone.of(backbone),
            weights=backbone.weights_sha256,
            transform=backbone.preprocessing.to_dict(),
            source=source,
            split_rule=split_rule,
            dtype=dtype,
            amp=AMP_DTYPE if amp else None,
            views=list(views) if len(views) > 1 else None,
        )

    @property
    def fingerprint(self) -> str:
        """Its SHA-256."""
        return sha256_json(to_json(self))

    def gave(self, features: str) -> bool:
        """Whether features with this fingerprint were asked for so, whatever the precision and the further views."""
        names = [view_names(crops, flip) for crops, flip in product(CROPS, (False, True))]
        views = [found if len(found) > 1 else None for found in names]
        return any(
            replace(self, amp=amp, views=found).fingerprint == features
            for amp, found in product((None, AMP_DTYPE), views)
        )


@dataclass(frozen=True, kw_only=True)
class PartialRequest(Request):
    """What an unfinished extraction was asked for, as its ``request.json`` holds it.

    Attributes:
        shard_rows: Images in one of its parts.
        shard_columns: The columns of a part; ``None`` in folders of versions that did not say it.
    """

    shard_rows: int
    shard_columns: list[str] | None = field(default=None, metadata=OPTIONAL)


def differences(found: Request, expected: Request) -> str:
    """In words, which parts differ, with the values where they are short; empty where none does."""
    parts = [(key, getattr(found, key, None), getattr(expected, key, None)) for key in _IN_WORDS]
    return " and ".join(_difference(key, old, new) for key, old, new in parts if old != new)


def _difference(key: str, old: Any, new: Any) -> str:
    if isinstance(old, RequestedBackbone) and isinstance(new, RequestedBackbone):
        old, new = old.spec, new.spec
    if isinstance(old, str | int) and isinstance(new, str | int) and old != new:
        return f"{_IN_WORDS[key]} ({_short(old)}, now {_short(new)})"
    return _IN_WORDS[key]


def _short(value: str | int) -> str:
    text = str(value)
    return text[:12] if len(text) == 64 else text
