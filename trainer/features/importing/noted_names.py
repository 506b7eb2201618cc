"""Names of classes that `datasets` notes beside an Arrow or parquet schema, as JSON under the key ``huggingface``."""

from collections import Counter
from typing import Any, NotRequired, TypedDict

import pyarrow as pa

from ....core.errors import InputError
from ....core.json_text import parse_json
from ....core.printable import shown
from ....core.typed_json import structured

_AGAIN = "write the file again with `datasets`, or without the metadata (pyarrow: table.replace_schema_metadata())"


class _Info(TypedDict):
    features: NotRequired[dict[str, Any] | None]


class _Noted(TypedDict):
    info: NotRequired[_Info | None]


class _ClassLabel(TypedDict):
    names: NotRequired[list[str] | None]


def noted_names(schema: pa.Schema, where: str) -> dict[str, list[str]]:
    """The class names of every column that is noted as a `ClassLabel`; a list that is empty says nothing.

    Args:
        schema: Of the file.
        where: The file, for errors.

    Raises:
        InputError: The metadata is no JSON or has something else in the place of names, or a name stands twice.
    """
    noted = (schema.metadata or {}).get(b"huggingface")
    if noted is None:
        return {}
    where = f"{where}: metadata huggingface"
    try:
        values = parse_json(noted)
    except ValueError as error:
        raise InputError(f"{where}: is no JSON ({error}); {_AGAIN}") from None
    info = structured(values, _Noted, where, advice=_AGAIN).get("info") or {}
    kinds = info.get("features") or {}
    there = (name for name in kinds if schema.get_field_index(name) >= 0)
    found = {name: _names(kinds[name], f"{where}: {shown(name)}") for name in there}
    return {name: names for name, names in found.items() if names}


def _names(kind: Any, where: str) -> list[str]:
    if not isinstance(kind, dict) or kind.get("_type") != "ClassLabel":
        return []
    names = structured(kind, _ClassLabel, where, advice=_AGAIN).get("names") or []
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{where}: names: {shown(twice)} stands twice, expected each class name once; {_AGAIN}")
    return names
