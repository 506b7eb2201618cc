"""JSON as Python holds it, before a reader makes a record of it."""

from typing import Any

# An object of a file: any value under any name. What is known of it is a record; see `typed_json`.
JsonObject = dict[str, Any]
