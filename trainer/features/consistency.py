"""Whether what a manifest says of itself in several places, and what the files say, is the same."""

from collections.abc import Mapping
from typing import Any

from ...core.files import sha256_json
from .columns import Columns
from .extraction.request import fingerprint


def contradictions(manifest: Mapping[str, Any], columns: Mapping[str, Columns]) -> list[str]:
    """What was changed by hand, each as ``FIELD: found, expected``.

    Args:
        manifest: Of a feature set. Where it holds no ``request``, as in memory, only the files are asked.
        columns: Its splits.
    """
    request, found = manifest.get("request", {}), list[str]()
    names, dtype = manifest["class_names"], manifest["dtype"]
    kept = [split.class_names for split in columns.values() if split.class_names is not None]
    if any(own != names for own in kept) or request.get("class_names", sha256_json(names)) != sha256_json(names):
        found.append("class_names: are not those that were written, so that labels may mean other classes")
    for split, one in columns.items():
        if one.features.dtype != dtype:
            found.append(f"dtype: found {dtype}, but the features of {split} are {one.features.dtype}")
    for field, value in _said_again(manifest).items():
        if field in request and request[field] != value:
            found.append(f"{field}: is not what was written")
    if "request" in manifest and _hash(request) != manifest["fingerprint"]:
        found.append("fingerprint: is not that of the request beside it")
    return found


def _hash(request: dict[str, Any]) -> str:
    try:
        return fingerprint(request)
    except ValueError:  # NaN, which nobody wrote
        return ""


def _said_again(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a request, as the rest of the manifest has them."""
    backbone = manifest["backbone"] or {}
    known = {key: backbone[key] for key in ("spec", "tap", "feature_dim") if key in backbone}
    return {
        "backbone": known or None,
        "weights": backbone.get("weights_sha256"),
        "transform": backbone.get("preprocessing"),
        "rows": manifest.get("rows_sha256"),
        "source": manifest.get("source_fingerprint"),
    }
