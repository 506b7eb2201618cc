"""What a feature set says of itself: ``manifest.json``."""

import os
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from ...core.errors import InputError
from ...core.files import regular_file
from ...core.records import read_versioned
from ...models.backbone_record import KnownBackbone
from .images.samples import SPLITS

FORMAT = "headsmith.features"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"


class _Unreadable(TypedDict):
    id: str
    reason: str


class _Imported(TypedDict):
    files: list[str]
    columns: dict[str, dict[str, str]]
    not_read: list[str]


class _Manifest(TypedDict):
    """What is read of a manifest later; it may hold more."""

    fingerprint: str
    request: dict[str, Any]
    backbone: KnownBackbone | None
    source: dict[str, Any] | None
    class_names: list[str]
    splits: dict[str, int]
    split_rule: NotRequired[str]
    rows_sha256: dict[str, str]
    pictures_sha256: NotRequired[dict[str, str]]
    feature_dim: int
    dtype: str
    unreadable: list[_Unreadable]
    views: NotRequired[list[str]]
    warnings: NotRequired[list[str]]
    imported: NotRequired[_Imported]


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of the feature set at ``path``.

    Raises:
        InputError: No folder, no manifest, one of something else or of a later version, or a field that is missing
            or of another kind.
    """
    if not path.is_dir():
        if os.path.lexists(path):
            regular_file(path)
        raise InputError(
            f"{path}: no such file or folder; make a feature set with `headsmith extract IMAGES` or `import FILE`"
        )
    file = path / MANIFEST
    if not file.exists():
        made = "expected what `headsmith extract` or `headsmith import` wrote"
        raise InputError(f"{path}: is not a feature set, it has no {MANIFEST}; {made}")
    again = "make it again with --overwrite"
    manifest = read_versioned(file, _Manifest, format=FORMAT, version=FORMAT_VERSION, advice=again)
    for field in ("splits", "rows_sha256"):
        names = list(manifest[field])
        if "train" not in names or not set(names) <= set(SPLITS):
            raise InputError(f"{file}: {field}: found {names[:5]}, expected train, val or test; {again}")
    return manifest
