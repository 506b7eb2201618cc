"""Reads that ask for more than a file holds."""

import tracemalloc

import pytest

from headsmith.core.bounded_file import ToItsEnd


@pytest.mark.parametrize("asked", [5, 1 << 16, 1 << 30, -1, None])
def test_it_gives_what_a_file_gives_and_no_memory_for_more(tmp_path, asked):
    path = tmp_path / "x"
    path.write_bytes(bytes(range(200)))
    with path.open("rb") as plain:
        plain.seek(7)
        expected = plain.read(5 if asked == 5 else -1)
    tracemalloc.start()
    with ToItsEnd(path) as file:
        file.seek(7)
        found = file.read(asked)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == expected
    assert most < 1 << 20
