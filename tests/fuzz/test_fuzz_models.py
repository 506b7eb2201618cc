"""Model files of every format, bundles, heads and checkpoints: opened, looked into and run."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from harness import Target

from headsmith.core.files import read_json, sha256_file, write_json
from headsmith.core.torch_file import load_tensors
from headsmith.export import Bundle, Classifier, file_info, open_model
from headsmith.export.formats.exported_program_format import write_exported_program
from headsmith.export.formats.onnx_format import write_onnx
from headsmith.export.formats.torchscript_format import write_torchscript
from headsmith.export.metadata import Metadata, identity
from headsmith.models.heads import MLP
from headsmith.trainer import Run

ABOUT = Metadata(tuple("abcdef"), "features", None, identity(None, 8), "feature set")
FEATURES = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
WRITERS = {"onnx": write_onnx, "ts": write_torchscript, "pt2": write_exported_program}


def exported(ending):
    def make(folder):
        torch.manual_seed(0)
        path = folder / f"model.{ending}"
        options = {"opset": 18} if ending == "onnx" else {}
        WRITERS[ending](Classifier(MLP(8, 6, hidden=4), probabilities=True), ABOUT, path, **options)
        return path

    return make


def opened(path):
    """What `info` shows of a file but its name, and what the file answers."""
    info = file_info(path)
    model = open_model(path, threads=1)
    return info.metadata, info.graph, model.run(FEATURES)._asdict()


@pytest.mark.parametrize("ending", WRITERS)
def test_model_files(fuzz, ending):
    fuzz(Target(f"model.{ending}", exported(ending), opened, change_is_seen=ending != "onnx", count=120))


def resealed(folder, file):
    """Let the manifest of a bundle know a damaged file's hash."""
    name = file.relative_to(folder).as_posix()
    if name == "manifest.json":
        return
    manifest = read_json(folder / "manifest.json")
    if name in manifest["files"]:
        manifest["files"][name] |= {"sha256": sha256_file(file), "bytes": file.stat().st_size}
        write_json(folder / "manifest.json", manifest)


def read_bundle(path):
    bundle = Bundle.load(path)
    answers = [bundle.open(format, threads=1).metadata for format in bundle.model_files]
    return bundle.manifest, bundle.class_names, bundle.preprocessing, answers


def test_bundles(fuzz, tiny_bundle):
    def copied(folder):
        return Path(shutil.copytree(tiny_bundle.path, folder / "bundle"))

    fuzz(Target("bundle", copied, read_bundle, change_is_seen=False, reseal=resealed, count=60))


def test_runs(fuzz, tiny_run):
    def copied(folder):
        return Path(shutil.copytree(tiny_run.path, folder / "run"))

    def read(path):
        run = Run.load(path)
        return run.head.state_dict(), run.record, run.config

    fuzz(Target("run", copied, read, change_is_seen=False))


@pytest.mark.parametrize("zipped", [True, False])
def test_checkpoints(fuzz, zipped):
    def make(folder):
        state = {"state_dict": {"a.weight": torch.arange(12.0).reshape(3, 4), "a.bias": torch.ones(3)}, "epoch": 3}
        torch.save(state, folder / "checkpoint.pt", _use_new_zipfile_serialization=zipped)
        return folder / "checkpoint.pt"

    name = "checkpoint" if zipped else "old checkpoint"
    fuzz(Target(name, make, load_tensors, change_is_seen=zipped))
