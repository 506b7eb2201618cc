"""Hashes of what a split holds: its ids and labels, its pictures, and all of it."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...core.files import sha256_json


def rows_sha256(ids: Sequence[str] | pa.StringArray, labels: np.ndarray[Any, np.dtype[np.int64]]) -> str:
    """SHA-256 over ids, one a line, and labels in their order."""
    names = ids if isinstance(ids, pa.Array) else pa.array(ids, pa.string())
    (text,) = pc.binary_join(pa.LargeListArray.from_arrays([0, len(names)], names), "\n")
    digest = hashlib.sha256(text.as_buffer())
    digest.update(np.ascontiguousarray(labels, dtype="<i8").data)
    return digest.hexdigest()


def pictures_sha256(pictures: pa.StringArray) -> str:
    """SHA-256 over the hashes of pictures, one a line."""
    return rows_sha256(pictures, np.empty(0, np.int64))


def mark_of(digest: str, rows: str, class_names: list[str]) -> str:
    """What a split's ``state.json`` calls its content: 16 hexadecimal digits.

    Args:
        digest: XXH3-128 of the features' bytes, in hexadecimal.
        rows: `rows_sha256` of the split.
        class_names: The classes.
    """
    return sha256_json([digest, rows, class_names])[:16]
