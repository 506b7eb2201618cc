"""What a file says of itself, where it is damaged."""

import json

import pytest

from headsmith.core.errors import InputError
from headsmith.core.records import to_json
from headsmith.export.metadata import Metadata, identity

ABOUT = Metadata(("a", "b"), "features", None, identity(None, 8), "feature set")


def test_it_comes_back():
    assert Metadata.from_strings(ABOUT.to_strings(), "x.ts") == ABOUT


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("labels", '["a", 1]', r"x.ts: labels: \[1\]: found 1, expected text"),
        ("labels", '["a", null]', "expected text"),
        ("labels", '{"a": 1}', "expected a list"),
        ("backbone", "3", "x.ts: backbone: expected an object"),
        ("backbone", json.dumps({"spec": None, "tap": None, "feature_dim": 8}), "weights_sha256: missing"),
        ("backbone", json.dumps(to_json(identity(None, 8)) | {"spec": [1]}), "spec: found a list, expected text"),
        ("backbone", "9" * 5000, "incomplete or damaged"),
        ("backbone", "[" * 100_000, "incomplete or damaged"),
        ("preprocessing", "[" * 100_000, "incomplete or damaged"),
        ("preprocessing", "[]", "x.ts: metadata: preprocessing: "),
        ("preprocessing", '{"mean": NaN}', "x.ts: metadata: preprocessing: "),
    ],
)
def test_damage_is_told_in_one_line(key, value, message):
    with pytest.raises(InputError, match=message) as found:
        Metadata.from_strings(ABOUT.to_strings() | {key: value}, "x.ts")
    assert "\n" not in str(found.value)
    assert str(found.value).startswith("x.ts: ")
