"""What decides the features: the parts that a cache must share to be reused."""

from typing import Any

from ...models.files import sha256_json

_IN_WORDS = {
    "backbone": "another backbone",
    "weights": "other backbone weights",
    "transform": "another transform (resize, crop, interpolation, mean, std or scale)",
    "source": "another source (class names, or the images' ids, labels, splits or bytes)",
    "split_rule": "another way to split",
    "dtype": "another dtype",
    "shard_rows": "another size of its parts",
}


def request_parts(backbone: dict[str, Any], source: str, split_rule: str, dtype: str) -> dict[str, Any]:
    """The parts of a request for features, as JSON values.

    Args:
        backbone: The backbone's record. Where its weights lie and its probe are left out: the weights' hash says more.
        source: Fingerprint of the image set.
        split_rule: How the images came to be divided.
        dtype: ``float16`` or ``float32``.
    """
    return {
        "backbone": {key: backbone[key] for key in ("spec", "tap", "feature_dim")},
        "weights": backbone["weights_sha256"],
        "transform": backbone["preprocessing"],
        "source": source,
        "split_rule": split_rule,
        "dtype": dtype,
    }


def fingerprint(parts: dict[str, Any]) -> str:
    """SHA-256 of a request."""
    return sha256_json(parts)


def differences(found: dict[str, Any], expected: dict[str, Any]) -> str:
    """In words, which parts differ, with the values where they are short; empty where none does."""
    return " and ".join(_difference(key, found, expected) for key in expected if found.get(key) != expected[key])


def _difference(key: str, found: dict[str, Any], expected: dict[str, Any]) -> str:
    old, new = found.get(key), expected[key]
    if key == "backbone" and isinstance(old, dict):
        old, new = old.get("spec"), new["spec"]
    if isinstance(old, str | int) and isinstance(new, str | int) and old != new:
        return f"{_IN_WORDS[key]} ({_short(old)}, now {_short(new)})"
    return _IN_WORDS[key]


def _short(value: str | int) -> str:
    text = str(value)
    return text[:12] if len(text) == 64 else text
