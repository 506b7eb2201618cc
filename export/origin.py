"""What a bundle says of the places that it was made from: names and hashes, no path of the machine that made it."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from ..core.files import sha256_json


def portable(value: Any) -> Any:
    """JSON values with each absolute path in them cut to its last component."""
    if isinstance(value, Mapping):
        return {key: portable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [portable(entry) for entry in value]
    if isinstance(value, str):
        for kind in (PurePosixPath, PureWindowsPath):
            if kind(value).is_absolute():
                return kind(value).name
    return value


def features_origin(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of features, of a run or of an older bundle, for a bundle.

    Hashes say later whether data lie at the place of the training.
    """
    if "source_sha256" in record:
        return dict(record)
    source = record["source"]
    hashed = {} if source is None else {"source_sha256": sha256_json(source), "place_sha256": _place(source["source"])}
    return {**portable(record), **hashed}


def is_source(found: Mapping[str, Any], features: Mapping[str, Any]) -> bool:
    """Whether images were opened as those of the training were.

    Args:
        found: The arguments that opened them.
        features: The record of the features, of a run or of a bundle.
    """
    if "source_sha256" in features:
        return bool(sha256_json(dict(found)) == features["source_sha256"])
    return bool(found == features["source"])


def path_inside(path: Path, features: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The parts of an absolute path below the folder that the images of the training were in; ``None`` elsewhere.

    Args:
        path: An absolute path.
        features: See `is_source`.
    """
    if features["source"] is None:
        return None
    place = features.get("place_sha256") or _place(features["source"]["source"])
    for folder in (path, *path.parents):
        if _place(str(folder)) == place:
            return path.relative_to(folder).parts
    return None


def _place(path: str) -> str:
    return sha256_json(path)
