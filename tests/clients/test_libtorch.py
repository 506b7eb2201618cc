"""A C++ program against the libtorch inside the torch wheel."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
from torch.utils.cpp_extension import include_paths, library_paths


def test_cpp_program(glyphs, need, tmp_path):
    # find_package(Torch) wants a CUDA toolkit where the wheel was built for CUDA; the two libraries of the CPU do not.
    compiler, program = shutil.which("g++"), tmp_path / "classify"
    need(compiler, "g++")
    source = Path(__file__).parent / "cpp" / "classify.cpp"
    paths = [f"-isystem{path}" for path in include_paths()]
    libraries = [flag for path in library_paths() for flag in (f"-L{path}", f"-Wl,-rpath,{path}")]
    command = [compiler, "-std=c++20", *paths, source, *libraries, "-ltorch_cpu", "-lc10", "-o", program]
    subprocess.run(command, check=True)
    images = np.ascontiguousarray(glyphs.pixels.transpose(0, 3, 1, 2), dtype=np.float32)
    shape = [str(size) for size in images.shape[1:]]
    run = [program, glyphs.bundle.path / "model.ts", *shape]
    done = subprocess.run(run, input=images.tobytes(), capture_output=True, check=True)
    assert [glyphs.bundle.class_names[int(index)] for index in done.stdout.split()] == glyphs.labels
