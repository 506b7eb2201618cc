"""Typed records: what is not what a field says is one line with file and field, and nothing is converted."""

import json
import math
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headsmith.core.errors import DamagedFileError
from headsmith.core.records import read_record, to_json, write_record
from headsmith.core.typed_json import check_lengths, structured


@dataclass(frozen=True)
class Inner:
    name: str
    share: float | None


@dataclass(frozen=True)
class Outer:
    n: int
    flag: bool
    mode: Literal["a", "b"]
    inner: Inner
    by_k: dict[int, Inner | None]
    edges: np.ndarray[Any, np.dtype[np.float64]]
    counts: np.ndarray[Any, np.dtype[np.int64]]
    pair: tuple[float, int]
    free: Any
    either: int | str
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_lengths({"edges": self.edges, "counts": self.counts})


RECORD = Outer(
    *(3, True, "a", Inner("x", math.nan), {1: Inner("y", 0.5), 5: None}, np.array([0.0, math.inf]), np.array([1, 2])),
    *((0.5, 2), {"anything": [1]}, "text", ["p", "q"]),
)


def damaged(**changes: object) -> str:
    values = to_json(RECORD)
    for name, value in changes.items():
        values[name] = value
    with pytest.raises(DamagedFileError) as caught:
        structured(values, Outer, "FILE", advice="make it again")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("FILE: ")
    assert message.endswith("; make it again")
    return message.removeprefix("FILE: ").removesuffix("; make it again")


def test_what_is_written_is_read_again(tmp_path):
    write_record(tmp_path / "a.json", RECORD)
    json.loads((tmp_path / "a.json").read_text(), parse_constant=pytest.fail)
    found = read_record(tmp_path / "a.json", Outer)
    assert to_json(found) == to_json(RECORD)
    assert (found.edges.dtype, found.counts.dtype) == (np.float64, np.int64)
    assert (found.pair, list(found.by_k)) == ((0.5, 2), [1, 5])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": "3"}, "n: found '3', expected a whole number"),
        ({"n": 3.0}, "n: found 3.0, expected a whole number"),
        ({"n": True}, "n: found true, expected a whole number"),
        ({"n": 10**30}, "n: found 1000000000000000000000000000000, expected a whole number of 64 bits"),
        ({"n": 10**5000}, "n: found a number of thousands of digits, expected a whole number of 64 bits"),
        ({"n": None}, "n: found null, expected a whole number"),
        ({"flag": "false"}, "flag: found 'false', expected true or false"),
        ({"mode": "c"}, "mode: found 'c', expected one of a, b"),
        ({"inner": []}, "inner: found a list, expected an object"),
        ({"inner": {"name": "x"}}, "inner.share: missing, expected a number or null"),
        ({"inner": {"name": 5, "share": None}}, "inner.name: found 5, expected text"),
        ({"inner": {"name": "\ud800", "share": None}}, r"expected Unicode text"),
        ({"inner": {"name": "x", "share": None, "shore": 1}}, "inner.shore: is no field of this version; did you mean"),
        ({"inner": {"name": "x", "share": 10**400}}, "expected a number of 64 bits"),
        ({"by_k": {"one": None}}, "by_k.one: found 'one', expected a whole number as the name of the field"),
        ({"by_k": {"\u0663": None}}, "expected a whole number as the name of the field"),
        ({"by_k": {"1": {"name": "x", "share": "0.5"}}}, "by_k.1.share: found '0.5', expected a number"),
        ({"edges": [0.0, "many"]}, "edges[1]: found 'many', expected a number"),
        ({"edges": [[0.0], [1.0]]}, "edges[0]: found a list, expected a number"),
        ({"edges": "nan"}, "edges: found 'nan', expected a list of numbers"),
        ({"edges": [0.0]}, "counts: found 2 entries, expected 1 as edges"),
        ({"counts": [1.5, 2]}, "counts[0]: found 1.5, expected a whole number"),
        ({"pair": [1.0]}, "pair: found a list, expected a list of 2"),
        ({"either": []}, "either: found a list, expected a whole number or text"),
        ({"names": "pq"}, "names: found 'pq', expected a list"),
        ({"names": ["p", "\x1b[31m" + "x" * 100]}, ""),
        ({"\x1b[31mextra": 1}, r"\x1b[31mextra: is no field of this version"),
    ],
)
def test_a_field_of_another_kind_is_named(changes, message):
    if message:
        assert message in damaged(**changes)
    else:
        values = to_json(RECORD) | changes
        assert structured(values, Outer, "FILE", advice="").names == changes["names"]


def test_the_whole_file_may_be_something_else():
    with pytest.raises(DamagedFileError, match="FILE: expected an object; make it again"):
        structured([], Outer, "FILE", advice="make it again")


def test_a_typed_dictionary_may_hold_more():
    class Part(TypedDict):
        n: int

    assert structured({"n": 1, "more": [2]}, Part, "FILE", advice="") == {"n": 1, "more": [2]}
    with pytest.raises(DamagedFileError, match="FILE: n: missing, expected a whole number"):
        structured({"more": 2}, Part, "FILE", advice="")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(list(to_json(RECORD))), JSON)
def test_any_value_in_any_field_is_read_or_told_in_one_line(name, value):
    values = to_json(RECORD) | {name: value}
    try:
        structured(values, Outer, "FILE", advice="make it again")
    except DamagedFileError as error:
        assert "\n" not in str(error)
