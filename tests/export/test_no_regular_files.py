"""Where a file should be and something else is, that is told, not that nothing is there."""

import os
import shutil

import pytest

from headsmith.core.errors import InputError
from headsmith.evaluate import evaluate_classifiers
from headsmith.export import file_info, verify
from headsmith.models import load_backbone
from headsmith.models.heads.storage import load_head
from headsmith.trainer.sweep.grid import read_plan

READERS = [file_info, load_head, lambda path: load_backbone("timm:test_resnet", checkpoint=path)]
READERS += [lambda path: read_plan(path, None, None)]


@pytest.mark.parametrize("read", READERS)
def test_a_pipe_a_device_and_a_folder_are_called_so(read, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path / "pipe", "a named pipe"), ("/dev/null", "a device")):
        with pytest.raises(InputError, match=f"{path}: is {kind}, expected a regular file"):
            read(path)
    with pytest.raises(InputError, match="gone: (not found|no such file)"):
        read(tmp_path / "gone")


@pytest.mark.parametrize("name", ["labels.txt", "model.onnx", "README.md", "reference.safetensors"])
def test_a_pipe_in_a_bundle_is_not_called_missing(tiny_bundle, tmp_path, name):
    copy = shutil.copytree(tiny_bundle.path, tmp_path / "copy")
    (copy / name).unlink()
    with pytest.raises(InputError, match=rf"{name}: (missing|not found)"):
        verify(copy)
    os.mkfifo(copy / name)
    with pytest.raises(InputError, match=f"{name}: is a named pipe, expected a regular file"):
        verify(copy)


def test_labels_of_other_files_are_not_called_missing(onnx_file, recipe_file, image_folder, tmp_path):
    os.mkfifo(tmp_path / "labels.txt")
    file = onnx_file("(float[N, 3, 8, 8] x) => (float[N, 2] y) { f = Flatten(x) y = MatMul(f, w) }", w=(192, 2))
    options = {"data": image_folder({"cat": 1, "dog": 1}), "preprocessing": recipe_file()}
    with pytest.raises(InputError, match=r"labels\.txt: is a named pipe, expected a regular file"):
        evaluate_classifiers(file, labels=tmp_path / "labels.txt", **options)
    with pytest.raises(InputError, match=r"gone\.txt: no such file"):
        evaluate_classifiers(file, labels=tmp_path / "gone.txt", **options)
