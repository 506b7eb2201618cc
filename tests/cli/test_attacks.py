"""Files that were made to do harm, through every command that takes one: nothing runs, and one line says so."""

import json
import logging
import pickle
import shutil
import zipfile
from pathlib import Path

import pytest
import torch
from two_faces import archive_of, two_faced
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.files import read_json, sha256_file, write_json
from headsmith.export import Classifier
from headsmith.export.formats.exported_program_format import write_exported_program
from headsmith.export.metadata import Metadata, identity
from headsmith.models import Linear

ABOUT = Metadata(tuple("abcdef"), "features", None, identity(None, 8), "feature set")
WEIGHTS, PROGRAM = "a/data/weights/model_weights_config.json", "a/models/model.json"
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


def touched(marker, action):
    """Whether an action makes the marker, which shows that a file is an attack; it is removed again."""
    logging.disable(logging.CRITICAL)
    try:
        action()
    except Exception:  # noqa: BLE001 - what it does afterwards does not matter
        assert marker.exists()
    finally:
        logging.disable(logging.NOTSET)
    made = marker.exists()
    marker.unlink(missing_ok=True)
    return made


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The members of a sound ``.pt2``, and its program."""
    path = tmp_path_factory.mktemp("sound") / "a.pt2"
    write_exported_program(Classifier(Linear(8, 6)), ABOUT, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return members, json.loads(members[PROGRAM])


def attack(kind, path, marker, sound):
    """Write a file that makes the marker, or never ends, where torch alone opens and runs it."""
    members, program = sound[0], json.loads(json.dumps(sound[1]))
    if kind == "pickle":
        path.write_bytes(pickle.dumps(Touch(marker)))
        assert touched(marker, lambda: pickle.loads(path.read_bytes()))
    elif kind == "torch pickle":
        torch.save(Touch(marker), path)
        assert touched(marker, lambda: torch.load(path, weights_only=False))
    elif kind == "script that saves":
        torch.jit.save(torch.jit.script(Writes(str(marker))), str(path))
        assert touched(marker, lambda: torch.jit.load(str(path))(torch.zeros(2, 8)))
    elif kind == "two directories":
        config = json.loads(members[WEIGHTS])
        entry = next(iter(config["config"].values()))
        entry["use_pickle"] = True
        torch.save(Touch(marker), path)
        hidden = {WEIGHTS: json.dumps(config).encode(), f"a/data/weights/{entry['path_name']}": path.read_bytes()}
        path.write_bytes(two_faced(members, members | hidden))
        with zipfile.ZipFile(path) as archive:  # what a check by zipfile sees
            assert all(archive.read(name) == content for name, content in members.items())
        assert touched(marker, lambda: torch.export.load(path))
    elif kind == "power":  # is not tried: it takes hours and all memory
        size = next(iter(program["graph_module"]["graph"]["tensor_values"].values()))["sizes"][0]
        size.clear()
        size["as_expr"] = {"expr_str": "9**9**9**9", "hint": None}
        path.write_bytes(archive_of(members | {PROGRAM: json.dumps(program).encode()}))
    return path


KINDS = {
    "pickle": (".onnx", ".ts", ".pt2"),
    "torch pickle": (".onnx", ".ts", ".pt2"),
    "script that saves": (".onnx", ".ts", ".pt2"),
    "two directories": (".pt2", ".ts"),
    "power": (".pt2",),
}
NAMES = {".onnx": "model.onnx", ".ts": "model.ts", ".pt2": "model.pt2"}


@pytest.mark.parametrize(("kind", "suffix"), [(kind, suffix) for kind, ends in KINDS.items() for suffix in ends])
def test_a_model_file_through_every_command(
    sound, marker, tmp_path, tiny_bundle, tiny_run, image_folder, hub, kind, suffix
):
    bundle = Path(shutil.copytree(tiny_bundle.path, tmp_path / "bundle"))
    bad = attack(kind, bundle / NAMES[suffix], marker, sound)
    manifest = read_json(bundle / "manifest.json")
    stated = {"sha256": sha256_file(bad), "bytes": bad.stat().st_size}
    # All hashes fit, and the bad file is the only one that can be opened.
    for name in ("model.onnx", "model.ts"):
        if name != bad.name:
            (bundle / name).unlink()
            del manifest["files"][name]
    parity = {bad.name: next(iter(manifest["parity"].values()))}
    write_json(bundle / "manifest.json", manifest | {"files": manifest["files"] | {bad.name: stated}, "parity": parity})
    zoo = tmp_path / "zoo.yaml"
    zoo.write_text(f"- id: bad\n  source: {bad}\n")
    images, results = image_folder({"cat": 3, "dog": 3}), ["--out", tmp_path / "results"]
    commands = [["info", bad], ["info", bundle], ["verify", bundle], ["push", bundle, "me/x"]]
    commands += [["evaluate", model, "--data", images, *results] for model in (bad, bundle, bundle.parent, zoo)]
    if suffix == ".onnx":
        commands += [["extract", images, "--backbone", f"onnx:{bad}", "--out", tmp_path / "features"]]
        commands += [["predict", bundle, images]]  # which reads this format alone
        commands += [["graft", bad, "--head", tiny_run.path, "--out", tmp_path / "grafted"]]
    for command in commands:
        result = runner.invoke(app, [str(argument) for argument in command])
        assert not marker.exists(), command
        assert result.exit_code in ((1, 2) if command[0] == "evaluate" else (2,)), (command, result.output)
        lines = [line for line in result.stderr.splitlines() if line]
        assert "Traceback" not in result.output and lines, (command, result.output)
        if command[0] != "evaluate":
            assert len(lines) == 1, (command, lines)
            # The file itself is what was refused, not something else of the bundle.
            assert bad.name in lines[0] and "hash" not in lines[0], (command, lines)
    assert not hub.repositories


@pytest.mark.parametrize("name", ["head.safetensors", "run.json", "config.yaml"])
def test_a_run_through_every_command(pickled, marker, tmp_path, tiny_run, onnx_file, name):
    assert touched(marker, lambda: torch.load(pickled, weights_only=False))
    run = Path(shutil.copytree(tiny_run.path, tmp_path / "run"))
    shutil.copy(pickled, run / name)
    record = run / "run.json"
    if name == "head.safetensors":
        write_json(record, read_json(record) | {"head_sha256": sha256_file(run / name)})
    features = read_json(tiny_run.path / "run.json")["features"]["path"]
    net = onnx_file("(float[N,3,8,8] x) => (float[N,3,8,8] y) { y = Relu(x) }")
    for command in (
        ["export", run, "--out", tmp_path / "out"],
        ["train", features, "--start", run, "--out", tmp_path / "out"],
        ["graft", net, "--head", run, "--out", tmp_path / "out"],
    ):
        refused(marker, *command)


@pytest.mark.parametrize("name", ["manifest.json", "test/state.json", "test/rows", "train/rows"])
def test_a_feature_set_through_every_command(pickled, marker, tmp_path, tiny_run, name):
    features = Path(shutil.copytree(read_json(tiny_run.path / "run.json")["features"]["path"], tmp_path / "features"))
    folder, _, rest = name.partition("/")
    path = next((features / folder).glob("*.arrow")) if rest == "rows" else features / name
    shutil.copy(pickled, path)
    commands = [["inspect", features], ["sweep", features, "--config", "x.yaml", "--out", tmp_path / "out"]]
    commands += [["train", features, "--out", tmp_path / "out"], ["import", features, "--out", tmp_path / "out"]]
    Path("x.yaml").write_text("learning_rate: [0.1, 0.2]\nepochs: 1\n")
    for command in commands:
        if command[0] == "import" and name == "manifest.json":
            continue  # it reads what `datasets` saved, and no manifest
        if command[0] in ("train", "sweep") and name.startswith("test"):
            continue  # they may end before the test split is read
        refused(marker, *command)


@pytest.fixture(scope="module")
def results(tiny_bundle, image_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "results"
    given = ["evaluate", str(tiny_bundle.path), "--data", str(image_folder({"cat": 2, "dog": 2})), "--out", str(out)]
    assert runner.invoke(app, given).exit_code in (0, 4)  # four images say little
    return out


@pytest.mark.parametrize("name", ["data.json", "result.json", "predictions.parquet", "results.csv"])
def test_results_through_every_command(pickled, marker, tmp_path, results, name):
    out = shutil.copytree(results, tmp_path / "results")
    (path,) = out.rglob(name)
    shutil.copy(pickled, path)
    refused(marker, "report", out)
    if name in ("result.json", "predictions.parquet"):
        refused(marker, "compare", path.parent, path.parent, "--results", out)


@pytest.mark.parametrize("name", ["labels.txt", "README.md", "model.onnx", "reference.safetensors"])
def test_a_bundle_that_links_to_a_file_elsewhere(tmp_path, marker, tiny_bundle, image_folder, name):
    bundle = Path(shutil.copytree(tiny_bundle.path, tmp_path / "bundle"))
    size = (bundle / name).stat().st_size
    (tmp_path / "secret").write_bytes(b"secret"[:size].ljust(size))
    (bundle / name).unlink()
    (bundle / name).symlink_to("../secret")
    for command in (["verify"], ["predict", image_folder({"cat": 1})], ["push", "me/x"]):
        result = runner.invoke(app, [command[0], str(bundle), *map(str, command[1:])])
        assert result.exit_code == 2 and f"{name}: not the file that manifest.json lists" in result.stderr
        assert "secret" not in result.output


@pytest.mark.parametrize("field", ["k", "labels", "files"])
def test_a_manifest_that_says_a_field_twice(tmp_path, tiny_bundle, image_folder, field):
    bundle = Path(shutil.copytree(tiny_bundle.path, tmp_path / "bundle"))
    text = (bundle / "manifest.json").read_text()
    (bundle / "manifest.json").write_text(f'{{"{field}": 0, {text.lstrip()[1:]}')
    for command in (["info"], ["verify"], ["predict", image_folder({"cat": 1})], ["push", "me/x"]):
        result = runner.invoke(app, [command[0], str(bundle), *map(str, command[1:])])
        assert result.exit_code == 2 and f"field '{field}' is repeated" in result.stderr, result.output
