import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from split_features import feature_set

HERE = Path(__file__).parent
NUMPY_WARNINGS_OF_TRITON = "ignore::RuntimeWarning"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--noconftest"]


@pytest.fixture
def under_the_interpreter():
    """Runs files of tests in a process of its own: Triton must be told to interpret before it is imported."""

    def run(*paths: Path | str) -> str:
        done = subprocess.run(
            [*PYTEST, "-p", "quick_interpreter", "-W", NUMPY_WARNINGS_OF_TRITON, *map(str, paths)],
            env=os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def digits():
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))  # the file goes writer by writer
    return feature_set(pixels[order] / 16, labels[order], classes=10)
