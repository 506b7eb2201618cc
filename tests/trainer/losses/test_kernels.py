"""The fused kernels run on the CPU, in a process of its own, because Triton must be told so before it is imported."""

from pathlib import Path

import pytest

pytest.importorskip("triton")


@pytest.mark.parametrize("name", ["interpreted_kernels.py", "interpreted_operators.py"])
def test_interpreted(name, under_the_interpreter):
    assert " passed" in under_the_interpreter(Path(__file__).with_name(name))
