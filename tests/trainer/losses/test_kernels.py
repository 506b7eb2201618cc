"""The fused kernels run on the CPU, in a process of its own, because Triton must be told so before it is imported."""

from pathlib import Path

import pytest

pytest.importorskip("triton")


def test_interpreted(under_the_interpreter):
    here, names = Path(__file__), ("kernels", "lapsum", "operators", "smoothing")
    assert " passed" in under_the_interpreter(*(here.with_name(f"interpreted_{name}.py") for name in names))
