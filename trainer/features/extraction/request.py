"""What decides the features: the parts that a cache must share to be reused."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from ....core.files import sha256_json
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


def request_parts(
    backbone: BackboneRecord,
    source: str,
    split_rule: str,
    dtype: str,
    *,
    amp: bool = False,
    views: Sequence[str] = (CENTRE,),
) -> dict[str, Any]:
    """The parts of a request for features, as JSON values.

    What is off leaves no part behind.

    Args:
        backbone: The backbone's record. Where its weights lie and its probe are left out: the weights' hash says more.
        source: Fingerprint of the image set.
        split_rule: How the images came to be divided.
        dtype: ``float16`` or ``float32``.
        amp: Whether the network runs under autocast.
        views: Names of the views of a training image.
    """
    extras = ({"amp": AMP_DTYPE} if amp else {}) | ({"views": list(views)} if len(views) > 1 else {})
    return extras | {
        "backbone": {"spec": backbone.spec, "tap": backbone.tap, "feature_dim": backbone.feature_dim},
        "weights": backbone.weights_sha256,
        "transform": backbone.preprocessing.to_dict(),
        "source": source,
        "split_rule": split_rule,
        "dtype": dtype,
    }


def fingerprint(parts: dict[str, Any]) -> str:
    """SHA-256 of a request."""
    return sha256_json(parts)


def differences(found: dict[str, Any], expected: dict[str, Any]) -> str:
    """In words, which parts differ, with the values where they are short; empty where none does."""
    return " and ".join(_difference(key, found, expected) for key in _IN_WORDS if found.get(key) != expected.get(key))


def same_images(parts: dict[str, Any], features: str) -> bool:
    """Whether features with this fingerprint have these parts, whatever they were computed with besides.

    Args:
        parts: A plain request, without autocast and further views.
        features: The fingerprint of a feature set.
    """
    precisions: tuple[dict[str, Any], ...] = ({}, {"amp": AMP_DTYPE})
    names = [view_names(crops, flip) for crops, flip in product(CROPS, (False, True))]
    views = [{"views": found} if len(found) > 1 else {} for found in names]
    return any(fingerprint(parts | one | other) == features for one, other in product(precisions, views))


def _difference(key: str, found: dict[str, Any], expected: dict[str, Any]) -> str:
    old, new = found.get(key), expected.get(key)
    if key == "backbone" and isinstance(old, dict) and isinstance(new, dict):
        old, new = old.get("spec"), new["spec"]
    if isinstance(old, str | int) and isinstance(new, str | int) and old != new:
        return f"{_IN_WORDS[key]} ({_short(old)}, now {_short(new)})"
    return _IN_WORDS[key]


def _short(value: str | int) -> str:
    text = str(value)
    return text[:12] if len(text) == 64 else text
