"""What a feature set says of itself: ``manifest.json``."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...core.coded_warnings import CodedWarning, of_texts
from ...core.errors import InputError
from ...core.files import regular_file, sha256_json
from ...core.json_values import JsonObject
from ...core.records import OPTIONAL, read_values
from ...core.typed_json import structured
from ...models.backbone_record import BackboneRecord, upgraded_backbone
from ...models.preprocessing import upgraded_recipe
from .columns import Columns
from .copies import Copies
from .extraction.request import Request, RequestedBackbone
from .images.samples import SPLITS, ImageSource, Unreadable

FORMAT = "headsmith.features"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
_AGAIN = "make it again with --overwrite"
# What the sentences hold that a version without codes wrote and that `headsmith inspect` tells in other words.
_OLD = {
    "ids in more than one split": "shared-ids",
    "of them to a row of an earlier split": "leak",
    "images are copies of images of an earlier split": "leak",
    "images are copies of an earlier one of the split": "copies",
    "rows are equal to another row": "copies",
    "classes without a training row": "unanswerable",
}


@dataclass(frozen=True)
class FeatureStatistics:
    """The features as they are stored, and how fast they were computed.

    Attributes:
        min: Their smallest value.
        max: Their largest value.
        mean_norm: The mean Euclidean norm of a row.
        seconds: In which at least one process extracted them; ``None`` of imported ones.
        images_per_second: Readable images in these seconds.
    """

    min: float
    max: float
    mean_norm: float
    seconds: float | None = field(default=None, metadata=OPTIONAL)
    images_per_second: float | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Imported:
    """Where imported features are from.

    Attributes:
        files: As they were named.
        columns: By table, the role of a column (``features``, ``labels``, ...) and its name.
        not_read: The other columns.
    """

    files: list[str]
    columns: dict[str, dict[str, str]]
    not_read: list[str]


@dataclass(frozen=True, kw_only=True)
class FeatureSetManifest:
    """A feature set, as its ``manifest.json`` describes it.

    Attributes:
        format: ``headsmith.features``.
        format_version: 1.
        fingerprint: SHA-256 of ``request``.
        request: What decides the features.
        backbone: What computed them; ``None`` of imported features of an unknown one.
        source: What opens the images again; ``None`` of imported features.
        source_fingerprint: Of the images as they were found; ``None`` of imported features.
        imported: Where imported features are from; ``None`` of extracted ones.
        class_names: The C classes; a label is an index into them.
        splits: Rows by split.
        split_rule: How the rows came to be divided.
        warnings: What was found while it was made.
        rows_sha256: By split, a hash of ids and labels.
        pictures_sha256: By split, a hash of the hashes of the pictures; ``None`` of imported sets.
        copies: Images that show the same picture; ``None`` of older and of imported sets.
        feature_dim: D.
        dtype: ``float16`` or ``float32``.
        amp: The dtype of autocast, where the backbone ran under it.
        views: Names of the rows that a training image is, where it is several.
        l2_normalised: Whether the rows were scaled to length 1; ``None`` where nobody knows.
        unreadable: Images that were left out.
        remarks: How many images had what; see `headsmith.models.images.remarks`.
        statistics: What the features are like.
        versions: Of headsmith, Python and the packages that computed.
        created: When, in UTC (ISO 8601).
    """

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    fingerprint: str
    request: Request
    backbone: BackboneRecord | None
    source: ImageSource | None
    source_fingerprint: str | None = field(default=None, metadata=OPTIONAL)
    imported: Imported | None = field(default=None, metadata=OPTIONAL)
    class_names: list[str]
    splits: dict[str, int]
    split_rule: str
    warnings: list[CodedWarning]
    rows_sha256: dict[str, str]
    pictures_sha256: dict[str, str] | None = field(default=None, metadata=OPTIONAL)
    copies: Copies | None = field(default=None, metadata=OPTIONAL)
    feature_dim: int
    dtype: str
    amp: str | None = field(default=None, metadata=OPTIONAL)
    views: list[str] | None = field(default=None, metadata=OPTIONAL)
    l2_normalised: bool | None = field(default=None, metadata=OPTIONAL)
    unreadable: list[Unreadable]
    remarks: dict[str, int] | None = field(default=None, metadata=OPTIONAL)
    statistics: FeatureStatistics
    versions: dict[str, str]
    created: str

    def __post_init__(self) -> None:
        for name in ("splits", "rows_sha256"):
            splits = list(getattr(self, name))
            if "train" not in splits or not set(splits) <= set(SPLITS):
                raise ValueError(f"{name}: found {splits[:5]}, expected train, val or test")


def is_feature_set(path: Path) -> bool:
    """Whether a folder holds features, which `datasets` loads too."""
    file = path / MANIFEST
    return file.is_file() and f'"{FORMAT}"' in file.read_text(encoding="utf-8", errors="replace")


def read_manifest(path: Path) -> FeatureSetManifest:
    """The manifest of the feature set at ``path``.

    Raises:
        InputError: No folder, no manifest, or one of something else or of a later version.
        DamagedFileError: A field is missing, unknown, or of another kind.
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
    values = read_values(file, format=FORMAT, version=FORMAT_VERSION, advice=_AGAIN)
    return structured(_upgraded(values), FeatureSetManifest, str(file), advice=_AGAIN)


def _upgraded(values: JsonObject) -> JsonObject:
    """The values of any version as this one writes them: warnings were sentences, and of equal rows stood elsewhere."""
    new: JsonObject = {"warnings": []} | values
    warnings = list[Any]()
    if "backbone" in values:
        new["backbone"] = upgraded_backbone(values["backbone"])
    if isinstance(imported := values.get("imported"), dict):
        new["imported"] = {name: value for name, value in imported.items() if name != "equal_rows"}
        warnings = imported.get("equal_rows", [])
    if isinstance(new["warnings"], list) and isinstance(warnings, list):
        new["warnings"] = of_texts(_coded(one) for one in [*new["warnings"], *warnings])
    return new


def _coded(warning: Any) -> Any:
    code = next((code for part, code in _OLD.items() if part in warning), None) if isinstance(warning, str) else None
    return warning if code is None else {"code": code, "message": warning}


def contradictions(manifest: FeatureSetManifest, columns: Mapping[str, Columns]) -> list[str]:
    """What was changed by hand, each as ``FIELD: found, expected``.

    Args:
        manifest: Of a feature set.
        columns: Its splits.
    """
    request, backbone, found = manifest.request, manifest.backbone, list[str]()
    recipe = backbone and upgraded_recipe(backbone.preprocessing.to_dict())
    names, dtype = manifest.class_names, manifest.dtype
    kept = [split.class_names for split in columns.values() if split.class_names is not None]
    if any(own != names for own in kept) or request.class_names not in (None, sha256_json(names)):
        found.append("class_names: are not those that were written, so that labels may mean other classes")
    for split, one in columns.items():
        if one.features.dtype != dtype:
            found.append(f"dtype: found {dtype}, but the features of {split} are {one.features.dtype}")
    same = {
        "backbone": request.backbone == RequestedBackbone.of(backbone),
        "weights": request.weights == (backbone and backbone.weights_sha256),
        "transform": request.transform is None or upgraded_recipe(request.transform) == recipe,
        "rows": request.rows in (None, manifest.rows_sha256),
        "source": request.source in (None, manifest.source_fingerprint),
    }
    found += [f"{field}: is not what was written" for field, is_same in same.items() if not is_same]
    if request.fingerprint != manifest.fingerprint:
        found.append("fingerprint: is not that of the request beside it")
    return found
