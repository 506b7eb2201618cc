"""Is a ``manifest.json`` that somebody hands over what `headsmith.export.bundle.manifest` writes?"""

from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, NotRequired, TypedDict

import cattrs

from ...core.errors import DamagedFileError
from ...core.files import sha256_json


class _Input(TypedDict):
    """What is ``Any`` is compared with the files themselves, see `headsmith.export.parity.stated`."""

    name: Any
    format: str
    dtype: Any
    shape: Any
    resize: bool


class _Head(TypedDict):
    kind: Any
    num_classes: int
    sha256: str


class _Measured(TypedDict):
    tolerance: float
    allowed_difference: NotRequired[float]
    max_abs_difference: float
    share: NotRequired[float | None]


class _File(TypedDict):
    bytes: int
    sha256: str


class _Manifest(TypedDict):
    """What is read of a manifest later; it may hold more."""

    labels: list[str]
    labels_sha256: str
    preprocessing: dict[str, Any] | None
    preprocessing_sha256: str
    input: _Input
    outputs: list[str]
    k: Any
    parameters: int
    backbone: dict[str, Any] | None
    head: _Head
    training: dict[str, Any]
    features: dict[str, Any]
    results: dict[str, Any]
    held_out: dict[str, Any]
    accuracy: dict[str, dict[str, Any]]
    parity: dict[str, _Measured]
    versions: dict[str, str]
    files: dict[str, _File]


def check_manifest(manifest: dict[str, Any], where: str) -> None:
    """Refuse a manifest that lacks something, names files outside of its folder, or contradicts its own hash.

    Args:
        manifest: What the file holds.
        where: The file, for errors.

    Raises:
        DamagedFileError: Such a manifest.
    """
    try:
        _converter().structure(manifest, _Manifest)
    except cattrs.BaseValidationError as error:
        reason = "; ".join(cattrs.transform_error(error, path="manifest")[:2])
        raise DamagedFileError(f"{where}: damaged ({reason}); export it again") from None
    for name in manifest["files"]:
        if not _is_inside(name):
            raise DamagedFileError(
                f"{where}: lists {name!r}, expected files inside the bundle's folder; do not use this bundle"
            )
    if manifest["preprocessing_sha256"] != _digest(manifest["preprocessing"]):
        raise DamagedFileError(
            f"{where}: preprocessing is not what preprocessing_sha256 was taken of: edited by hand? export it again"
        )


def _digest(recipe: dict[str, Any] | None) -> str | None:
    """What `Metadata.preprocessing_sha256` is of it; ``None`` of numbers that JSON does not know."""
    try:
        return "" if recipe is None else sha256_json(recipe)
    except ValueError:
        return None


def _converter() -> cattrs.Converter:
    """Takes values as they are: no text for a number."""
    converter = cattrs.Converter()
    for kinds in ((str,), (int,), (bool,), (float, int)):
        converter.register_structure_hook(kinds[0], _exact(kinds))
    return converter


def _exact(kinds: tuple[type, ...]) -> Any:
    def structure(value: Any, _: type) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(f"{value!r} found, expected {kinds[0].__name__}")
        return value

    return structure


def _is_inside(name: str) -> bool:
    """Whether it is a relative name on every system, and never goes up; what it may link to is the hub's cache."""
    windows = PureWindowsPath(name)
    return not (PurePosixPath(name).is_absolute() or windows.anchor or ".." in windows.parts)
