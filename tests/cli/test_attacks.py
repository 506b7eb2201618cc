"""Files that were made to do harm, through every command that takes one: nothing runs, and one line says so."""

import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.files import read_json, sha256_file, write_json

runner = CliRunner()
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit")


class Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


class Writes(torch.nn.Module):
    def __init__(self, path):
        super().__init__()
        self.path = path

    def forward(self, x):
        torch.save(x, self.path)
        return x, x, x.long()


@pytest.fixture
def marker(tmp_path):
    return tmp_path / "marker"


@pytest.fixture
def pickled(tmp_path, marker):
    torch.save({"features": Touch(marker), "labels": torch.arange(4)}, tmp_path / "evil.pt")
    return tmp_path / "evil.pt"


@pytest.fixture
def script(tmp_path, marker):
    path = tmp_path / "evil.ts"
    torch.jit.save(torch.jit.script(Writes(str(marker))), str(path))
    return path


def refused(marker, *arguments):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert not marker.exists()
    assert result.exit_code == 2, result.output
    assert len([line for line in result.stderr.splitlines() if line]) == 1, result.stderr


@pytest.mark.parametrize("suffix", [".ts", ".pt2", ".onnx", ".TS", ".PT2", ".ONNX"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_bare_file_of_any_name(script, marker, tmp_path, suffix, linked):
    path = tmp_path / f"model{suffix}"
    (path.symlink_to if linked else lambda source: shutil.copy(source, path))(script)
    refused(marker, "info", path)


@pytest.mark.parametrize("suffix", [".pt", ".p", ".PT", ".npz", ".npy", ".safetensors", ".parquet"])
def test_features_of_any_name(pickled, marker, tmp_path, suffix):
    path = tmp_path / f"renamed{suffix}"
    shutil.copy(pickled, path)
    refused(marker, "import", path, "--out", tmp_path / "out")


def test_a_checkpoint(pickled, marker, tmp_path, image_folder):
    images = image_folder({"cat": 4, "dog": 4})
    given = ["--backbone", "timm:test_resnet", "--checkpoint", pickled, "--out", tmp_path / "out"]
    refused(marker, "extract", images, *given)


@pytest.mark.parametrize("command", ["predict", "verify", "evaluate", "push"])
def test_a_bundle_whose_hashes_fit(script, marker, tmp_path, tiny_bundle, image_folder, command):
    bundle = Path(shutil.copytree(tiny_bundle.path, tmp_path / "bundle"))
    manifest = read_json(bundle / "manifest.json")
    for name in list(manifest["files"]):
        if name.endswith((".ts", ".onnx")):
            shutil.copy(script, bundle / name)
            manifest["files"][name] |= {"sha256": sha256_file(script), "bytes": script.stat().st_size}
    write_json(bundle / "manifest.json", manifest)
    images = image_folder({"cat": 2, "dog": 2})
    rest = {"predict": [images], "verify": [], "evaluate": ["--data", images], "push": ["me/x"]}[command]
    result = runner.invoke(app, [command, str(bundle), *map(str, rest)])
    assert not marker.exists()
    assert result.exit_code in (1, 2) and "Traceback" not in result.output, result.output


@pytest.mark.parametrize("name", ["head.safetensors", "run.json"])
def test_a_run(pickled, marker, tmp_path, tiny_run, name):
    run = Path(shutil.copytree(tiny_run.path, tmp_path / "run"))
    shutil.copy(pickled, run / name)
    refused(marker, "export", run, "--out", tmp_path / "out")
