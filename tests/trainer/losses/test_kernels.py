"""The fused kernels run on the CPU, in a process of its own, because Triton must be told so before it is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
NUMPY_WARNINGS_OF_TRITON = "ignore::RuntimeWarning"
PYTEST = [
    sys.executable,
    "-m",
    "pytest",
    "-q",
    "-x",
    "-p",
    "no:cacheprovider",
    "--noconftest",
    "-W",
    NUMPY_WARNINGS_OF_TRITON,
]


@pytest.mark.parametrize("name", ["interpreted_kernels.py", "interpreted_operators.py"])
def test_interpreted(name):
    path = Path(__file__).with_name(name)
    done = subprocess.run(
        [*PYTEST, str(path)],
        env=os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
