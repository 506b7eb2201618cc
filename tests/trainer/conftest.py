import os
import subprocess
import sys
from pathlib import Path

import pytest

NUMPY_WARNINGS_OF_TRITON = "ignore::RuntimeWarning"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--noconftest"]


@pytest.fixture
def under_the_interpreter():
    """Runs a file of tests in a process of its own: Triton must be told to interpret before it is imported."""

    def run(path: Path) -> str:
        done = subprocess.run(
            [*PYTEST, "-W", NUMPY_WARNINGS_OF_TRITON, str(path)],
            env=os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
