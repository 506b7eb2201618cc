"""Hashes of a record's fields, by which an edited field is found and named."""

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any


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
