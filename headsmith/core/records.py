"""Dataclasses as JSON that any reader takes, and back; hashes of their fields, by which an edited one is found."""

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .errors import DamagedFileError, InputError
from .files import read_json, write_json
from .json_values import JsonObject
from .typed_json import structured

T = TypeVar("T")
# Metadata of a field that has no key in the file where it is ``None``.
OPTIONAL = {"optional": True}


def to_json(value: Any) -> Any:
    """A dataclass as JSON values; what is not finite, which JSON does not know, as ``nan``, ``inf`` and ``-inf``.

    Properties that a class names in ``derived`` follow its fields.
    """
    if value is None or isinstance(value, str | int):
        return value
    if is_dataclass(value):
        found = {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
        found |= {name: to_json(getattr(value, name)) for name in getattr(value, "derived", ())}
        left_out = {field.name for field in fields(value) if "optional" in field.metadata and found[field.name] is None}
        return {name: one for name, one in found.items() if name not in left_out}
    if isinstance(value, Mapping):
        return {str(key): to_json(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return to_json(value.tolist())
    if isinstance(value, list | tuple):
        return [to_json(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def write_record(path: Path, value: Any) -> None:
    """Write a dataclass as JSON."""
    write_json(path, to_json(value))


def read_values(path: Path, *, format: str, version: int, advice: str) -> JsonObject:
    """Read a JSON object that says its format and the format's version, as values that its reader may upgrade.

    Args:
        path: The file.
        format: What ``format`` must be.
        version: The latest ``format_version`` that is read.
        advice: How to make the file anew.

    Raises:
        InputError: No such file, no JSON object in it, another format, or a later version.
    """
    values = read_json(path)
    if values.get("format") != format:
        raise InputError(f"{path}: format is {values.get('format')!r}, expected {format!r}")
    found = values.get("format_version")
    if found != version and isinstance(found, int):
        raise InputError(
            f"{path}: format_version is {found}, this headsmith reads {version}; {advice}, or use the headsmith that "
            "wrote it"
        )
    return values


def read_versioned(path: Path, kind: type[Any], *, format: str, version: int, advice: str) -> JsonObject:
    """Values of `read_values`, of which those that a typed dictionary names are of its kinds.

    Raises:
        InputError: See `read_values`.
        DamagedFileError: See `structured`.
    """
    values = read_values(path, format=format, version=version, advice=advice)
    structured(values, kind, str(path), advice=advice)
    return values


def read_record(
    path: Path, kind: type[T], *, advice: str = "damaged, or of another version: evaluate again into another folder"
) -> T:
    """Read what `write_record` wrote.

    Args:
        path: The file.
        kind: The dataclass.
        advice: What to do about a file that is no such record.

    Raises:
        InputError: No such file, or no JSON object in it.
        DamagedFileError: See `structured`.
    """
    return structured(read_json(path), kind, str(path), advice=advice)


# The field of a record with the hashes of all others.
HASHES = "fields_sha256"


def field_hashes(record: Mapping[str, Any], *, without: Collection[str]) -> dict[str, str]:
    """SHA-256 of each field of a record as JSON, in hexadecimal.

    Args:
        record: The record.
        without: Fields that are not hashed.
    """
    fields = json.loads(json.dumps(dict(record)))
    texts = {key: json.dumps(value, sort_keys=True) for key, value in fields.items() if key not in without}
    return {key: hashlib.sha256(text.encode()).hexdigest() for key, text in texts.items()}


def changed_fields(record: Mapping[str, Any], hashes: Mapping[str, Any], *, without: Collection[str]) -> list[str]:
    """The fields, sorted, that have another hash now, are missing, or are new."""
    found = field_hashes(record, without=without)
    return sorted(key for key in found.keys() | hashes.keys() if found.get(key) != hashes.get(key))


def with_hashes(record: Mapping[str, Any]) -> JsonObject:
    """A record with the hashes of its fields in one more field."""
    fields = {key: value for key, value in record.items() if key != HASHES}
    return {**fields, HASHES: field_hashes(fields, without=())}


def check_hashes(record: Mapping[str, Any], where: str, *, writer: str, advice: str) -> None:
    """Compare a record with the hashes in it.

    Args:
        record: As the file holds it.
        where: The file, for errors.
        writer: What wrote it, for errors.
        advice: What to do, for errors.

    Raises:
        DamagedFileError: A field is another one now, missing or new; or the hashes themselves are missing.
    """
    hashes = record.get(HASHES)
    if not isinstance(hashes, Mapping):
        raise DamagedFileError(f"{where}: {HASHES}: missing, so that nothing says what {writer} wrote; {advice}")
    if edited := changed_fields(record, hashes, without=(HASHES,)):
        raise DamagedFileError(
            f"{where}: {', '.join(edited[:3])}: not what {writer} wrote (hash differs): edited? {advice}"
        )
