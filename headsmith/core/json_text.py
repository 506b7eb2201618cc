"""JSON of strangers, as one thing for every reader: no object says a field twice."""

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: No JSON, values too deep in each other, a number of thousands of digits, or an object with a field
            twice, of which each reader would take another.
    """
    try:
        return json.loads(text, object_pairs_hook=_object)
    except ValueError as error:
        if "int_max_str_digits" in str(error):  # Python's advice, for which no user has a place
            raise ValueError("a number of thousands of digits") from None
        raise
    except RecursionError:
        raise ValueError("values lie too deep in each other") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"field {twice[:40]!r} stands twice in one object")
    return found
