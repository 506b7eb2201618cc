"""Hashes of a record's fields, by which an edited field is found and named."""

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from .errors import DamagedFileError

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


def with_hashes(record: Mapping[str, Any]) -> dict[str, Any]:
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
