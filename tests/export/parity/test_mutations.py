"""The proof cannot be fooled: an exported file is damaged in every way that matters, and each is caught.

`pytest -s tests/export/parity/test_mutations.py` prints the table.
"""

import json
import runpy
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from damage import DAMAGES, damaged

from headsmith.core.errors import HeadsmithError
from headsmith.core.files import sha256_file
from headsmith.export import Bundle, Classifier, export_classifier, open_model, verify
from headsmith.export.options import ExportOptions
from headsmith.export.parity.proof_at_export import prove
from headsmith.export.parity.python_module import PythonModule
from headsmith.export.training_source import RunInputs
from headsmith.models.backbone import backbone_from_record

TOLD = {  # what a file says of itself
    "labels swapped": lambda about: replace(about, labels=(about.labels[1], about.labels[0], *about.labels[2:])),
    "another crop": lambda about: replace(about, preprocessing=replace(about.preprocessing, resize_size=(48, 48))),
    "another filter": lambda about: replace(about, preprocessing=replace(about.preprocessing, interpolation="nearest")),
    "another mean": lambda about: replace(
        about, preprocessing=replace(about.preprocessing, mean=(0.485, 0.456, 0.406))
    ),
    "another deviation": lambda about: replace(about, preprocessing=replace(about.preprocessing, std=(0.2, 0.2, 0.2))),
    "BGR": lambda about: replace(about, preprocessing=replace(about.preprocessing, channel_order="bgr")),
}
LISTED = ("model.onnx", "labels.txt", "reference.safetensors", "parity.json")


@pytest.fixture(scope="module")
def bundle(tiny_run, tmp_path_factory):
    out = tmp_path_factory.mktemp("mutations") / "tiny"
    return export_classifier(tiny_run, out=out, input_format="uint8-nhwc", probabilities=True)


@pytest.fixture(scope="module")
def proof(tiny_run, bundle):
    """A function: prove a file beside the module that it was exported from."""
    backbone = backbone_from_record(tiny_run.record.backbone)
    module = Classifier(tiny_run.head, backbone, "uint8-nhwc", probabilities=True)
    about = bundle.open().metadata
    held_out = RunInputs(tiny_run, about, None).held_out()

    def check(path):
        prove(PythonModule(module, about), {"model.onnx": open_model(path)}, held_out, ExportOptions())

    return check


def caught(check, *arguments):
    try:
        check(*arguments)
    except HeadsmithError as error:
        assert "\n" not in str(error)
        return True
    return False


def verified(folder):
    verify(folder).check()


def list_hashes(folder, **changes):
    """Let the manifest say that all files are the right ones."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text()) | changes
    for name in LISTED:
        file = folder / name
        manifest["files"][name] = {"sha256": sha256_file(file), "bytes": file.stat().st_size}
    path.write_text(json.dumps(manifest))


def retold(folder, change):
    """Change what a bundle says of itself, everywhere but in its reference."""
    about = change(Bundle.load(folder).open().metadata)
    model = onnx.load(folder / "model.onnx")
    onnx.helper.set_model_props(model, about.to_strings())
    onnx.save(model, folder / "model.onnx")
    (folder / "labels.txt").write_text("".join(f"{label}\n" for label in about.labels))
    list_hashes(
        folder,
        labels=list(about.labels),
        labels_sha256=about.labels_sha256,
        preprocessing=about.preprocessing.to_dict(),
        preprocessing_sha256=about.preprocessing_sha256,
    )


def test_every_damage_is_a_file_that_runs(bundle):
    """A file that does not run is caught whatever was damaged."""
    sound = (bundle.path / "model.onnx").read_bytes()
    pixels = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), np.uint8)
    for name in DAMAGES:
        session = onnxruntime.InferenceSession(damaged(sound, name), providers=["CPUExecutionProvider"])
        for n in (1, 2, 3):
            assert [len(output) for output in session.run(None, {"pixel_values": pixels[:n]})] == [n] * 4


def test_every_damage_is_caught(bundle, proof, tmp_path):
    sound = (bundle.path / "model.onnx").read_bytes()
    folder = shutil.copytree(bundle.path, tmp_path / "copy")
    file = folder / "model.onnx"
    assert not caught(proof, file)
    assert not caught(verified, folder)
    rows = []
    for name in DAMAGES:
        file.write_bytes(damaged(sound, name))
        list_hashes(folder)
        rows.append((name, caught(proof, file), caught(verified, folder)))
    for name, change in TOLD.items():
        shutil.copytree(bundle.path, folder, dirs_exist_ok=True)
        retold(folder, change)
        rows.append((f"it says: {name}", caught(proof, file), caught(verified, folder)))
    print()  # noqa: T201 - the table
    for name, *both in rows:
        print(f"{name:45} {'  '.join('caught' if one else 'MISSED' for one in both)}")  # noqa: T201
    counts = [sum(row[place] for row in rows) for place in (1, 2)]
    print(f"proof: {counts[0]} caught of {len(rows)}; verify: {counts[1]} caught of {len(rows)}")  # noqa: T201
    assert counts == [len(rows)] * 2, [name for name, *both in rows if not all(both)]
    assert len(rows) >= 30


def test_a_sound_export_passes():
    """Twelve of the 200 that `benchmarks/exports_without_alarm.py` makes."""
    script = Path(__file__).parents[3] / "benchmarks" / "exports_without_alarm.py"
    counts, used, failed = runpy.run_path(str(script))["false_alarms"](range(4, 16))
    assert failed == []
    assert max(used.values()) < 0.5, used  # far from an alarm, where every damage above is beyond one
    assert counts.keys() >= {"timm", "torchscript", "pt2", "triton", "linear", "norm_linear", "cosine", "mlp"}
