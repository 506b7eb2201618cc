"""`headsmith verify`: a bundle answers here as it did where it was exported, or what differs is named."""

import json
import shutil

import numpy as np
import onnx
import pytest
import safetensors.numpy
from PIL import Image
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.errors import DamagedFileError, InputError
from headsmith.core.files import sha256_file
from headsmith.core.records import field_hashes
from headsmith.export import ParityError, export_classifier, verify
from headsmith.export.held_out import Batch
from headsmith.export.metadata import Metadata, identity
from headsmith.export.parity.verification_data import METADATA, Recorder, Reference
from headsmith.trainer import FeatureSet, train


@pytest.fixture
def copy(tiny_bundle, tmp_path):
    return shutil.copytree(tiny_bundle.path, tmp_path / "copy")


def source(run):
    return run.record.features.source.source


@pytest.mark.parametrize("with_data", [False, True])
def test_a_bundle_verifies(tiny_bundle, tiny_run, with_data):
    found = verify(tiny_bundle.path, data=source(tiny_run) if with_data else None)
    assert found.passed
    found.check()
    assert found.files.keys() == {"model.onnx", "model.ts"}
    for report in found.files.values():
        assert report.n == report.equal_top1 == (12 if with_data else 6)
        drawn = 2 + int(tiny_bundle.manifest.files[report.name].sha256[:8], 16) % 127
        assert report.batches.keys() == {1, 2, 3, 5, 7, 64, 67, drawn, report.n}
        assert report.max_abs_difference < 1e-4
    assert found.changed == []
    assert found.versions == found.exported_with


def replace_answers(bundle, change):
    """Change the Python module's answers in a bundle, as if its file answered otherwise here."""
    path = bundle / "reference.safetensors"
    reference = Reference.load(bundle)
    tensors = {f"answers:{name}": change(logits) for name, logits in reference.answers.items()}
    tensors |= {f"inputs:{row}": values for row, values in reference.inputs.items()}
    tensors |= {"made_up:inputs": reference.made_up}
    tensors |= {f"made_up:{name}": values for name, values in reference.made_up_answers.items()}
    rows = {"ids": reference.ids, "digests": reference.digests}
    safetensors.numpy.save_file(tensors, path, {**reference.metadata.to_strings(), METADATA: json.dumps(rows)})
    list_hash(path)


def list_hash(path):
    """Let the manifest beside a file say that it is the right one."""
    listing = path.parent / "manifest.json"
    manifest = json.loads(listing.read_text())
    manifest["files"][path.name] = {"sha256": sha256_file(path), "bytes": path.stat().st_size}
    listing.write_text(json.dumps(manifest))


def test_a_file_that_answers_otherwise_here(copy):
    replace_answers(copy, lambda logits: np.ascontiguousarray(logits[:, ::-1]))
    found = verify(copy)
    assert not found.passed
    with pytest.raises(ParityError, match="model.onnx does not answer as the Python module at the export on 6"):
        found.check()
    result = CliRunner().invoke(app, ["verify", str(copy), "--json"])
    assert result.exit_code == 3
    assert json.loads(result.stdout)["files"]["model.onnx"]["passed"] is False
    assert "does not answer" in result.stderr


def tail_of_logits(path, build):
    """Put nodes behind the logits of a file, by a function of the names before and after them; its hash is listed."""
    model = onnx.load(path)
    (last,) = [node for node in model.graph.node if "logits" in node.output]
    last.output[:] = ["before"]
    place = [*model.graph.node].index(last) + 1
    for number, node in enumerate(build("before", "logits")):
        model.graph.node.insert(place + number, node)
    path.write_bytes(model.SerializeToString())
    list_hash(path)


@pytest.mark.parametrize("seed", [{}, {"seed": 1.0}])
def test_a_file_that_answers_at_random(copy, seed):
    def noisy(before, after):
        noise = onnx.helper.make_node("RandomNormalLike", [before], ["noise"], **seed)
        return [noise, onnx.helper.make_node("Add", [before, "noise"], [after])]

    tail_of_logits(copy / "model.onnx", noisy)
    with pytest.raises(ParityError, match=r"^model\.onnx: answers the same input differently each time: it draws"):
        verify(copy)


def test_a_file_that_answers_nan(copy):
    """Six inputs, at batches of each size, and made-up ones: the count is of all answers to them."""

    def not_a_number(before, after):
        zero = onnx.helper.make_node("Sub", [before, before], ["zero"])
        return [zero, onnx.helper.make_node("Div", ["zero", "zero"], [after])]

    tail_of_logits(copy / "model.onnx", not_a_number)
    found = verify(copy)
    report = found.files["model.onnx"]
    with pytest.raises(ParityError) as error:
        found.check()
    assert "; largest difference NaN or infinite (allowed" in str(error.value)
    assert report.not_finite > report.n
    assert f"of {report.answers} answers, all batch sizes together, {report.not_finite} have NaN" in str(error.value)
    sound = found.files["model.ts"]
    assert (sound.passed, sound.not_finite) == (True, 0)
    assert 0 <= report.not_finite <= report.answers


def test_the_table(tiny_bundle):
    result = CliRunner().invoke(app, ["verify", str(tiny_bundle.path)])
    assert result.exit_code == 0
    assert "hashes fit" in result.stdout
    assert result.stdout.count("as exported") == 2


def test_no_batch(tiny_bundle):
    with pytest.raises(InputError, match="batch_size: 0 found, expected at least 1"):
        verify(tiny_bundle, batch_size=0)


def test_a_hash_that_does_not_fit(copy):
    with (copy / "model.onnx").open("r+b") as file:
        file.seek(1000)
        file.write(b"x")
    with pytest.raises(DamagedFileError, match="its hash differs"):
        verify(copy)


def test_a_bundle_without_reference(copy):
    (copy / "reference.safetensors").unlink()
    manifest = json.loads((copy / "manifest.json").read_text())
    del manifest["files"]["reference.safetensors"]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"reference\.safetensors: not found, so there is nothing to compare with"):
        verify(copy)


def test_a_damaged_reference(copy):
    (copy / "reference.safetensors").write_bytes(b"nothing")
    with pytest.raises(DamagedFileError, match="damaged"):
        Reference.load(copy)


@pytest.fixture(scope="module")
def rows_of_one_id(tmp_path_factory):
    """A head on a feature set in which two rows share an id, as bags and views do; and that set."""
    folder = tmp_path_factory.mktemp("bags")
    random = np.random.default_rng(0)
    labels = np.tile(np.arange(3), 40)
    rows = random.normal(size=(120, 8)).astype(np.float32) + 4 * np.eye(8, dtype=np.float32)[labels]
    ids = [f"bag{row // 6}{'abc'[row % 3]}" for row in range(120)]
    parts = {"train": slice(0, 60), "val": slice(60, 90), "test": slice(90, 120)}
    columns = ({split: values[part] for split, part in parts.items()} for values in (rows, labels, np.array(ids)))
    features, classes, names = columns
    found = FeatureSet.from_arrays(features, classes, ids=names, out=folder / "features", class_names=["x", "y", "z"])
    run = train(found, out=folder / "run", epochs=20, device="cpu")
    return export_classifier(run, out=folder / "bundle", head_only=True), found


@pytest.mark.parametrize("with_data", [False, True])
def test_several_rows_of_one_id(rows_of_one_id, with_data):
    bundle, features = rows_of_one_id
    assert len(set(features.ids("test"))) == 15 < len(features.ids("test"))
    found = verify(bundle, data=features if with_data else None)
    assert found.passed
    assert found.changed == []
    assert found.files["model.onnx"].n == (30 if with_data else 8)


def test_a_changed_row_among_several_of_its_id(rows_of_one_id):
    bundle, features = rows_of_one_id
    rows = features.arrays("test")[0].clone()
    rows[4] += 1
    other = FeatureSet.from_arrays(
        {split: rows if split == "test" else features.arrays(split)[0] for split in features.splits},
        {split: features.arrays(split)[1] for split in features.splits},
        ids={split: np.array(features.ids(split)) for split in features.splits},
        class_names=features.class_names,
    )
    found = verify(bundle, data=other)
    assert found.changed == [features.ids("test")[4]]
    assert found.files["model.onnx"].n == 29
    assert found.passed


def by_id(bundle):
    """Write a bundle's reference as it was before several inputs could share an id."""
    reference = Reference.load(bundle)
    tensors = {f"answers:{name}": logits for name, logits in reference.answers.items()}
    tensors |= {f"inputs:{reference.ids[row]}": values for row, values in reference.inputs.items()}
    digests = json.dumps(dict(zip(reference.ids, reference.digests, strict=True)))
    path = bundle / "reference.safetensors"
    safetensors.numpy.save_file(tensors, path, {"headsmith": digests})
    list_hash(path)


def test_an_older_bundle_verifies(copy, tiny_run):
    by_id(copy)
    assert verify(copy).passed
    found = verify(copy, data=source(tiny_run))
    assert found.passed
    assert found.files["model.onnx"].n == 12


def test_an_older_bundle_whose_inputs_share_ids(rows_of_one_id, tmp_path):
    folder = shutil.copytree(rows_of_one_id[0].path, tmp_path / "older")
    by_id(folder)
    with pytest.raises(InputError, match="30 answers to inputs of 15 ids, .*; export the bundle again"):
        verify(folder)


def test_a_feature_set_is_opened_once(tiny_run, tmp_path, monkeypatch):
    opened, load = [], FeatureSet.load.__func__

    def counted(cls, path):
        opened.append(path)
        return load(cls, path)

    monkeypatch.setattr(FeatureSet, "load", classmethod(counted))
    export_classifier(tiny_run, out=tmp_path / "head", head_only=True, precision="fp16", calibrate=True, max_drop=100)
    assert opened == [tiny_run.record.features.path]
    export_classifier(tiny_run, out=tmp_path / "whole", calibrate=True)
    assert len(opened) == 2


def test_other_images(tiny_bundle, image_folder):
    with pytest.raises(InputError, match="has none of the 12 inputs whose answers the bundle carries"):
        verify(tiny_bundle, data=image_folder({"cat": 20}, size=41))


def test_images_that_decode_otherwise_are_named_and_not_compared(tiny_bundle, tiny_run, tmp_path):
    held_out = FeatureSet.load(tiny_run.record.features.path).ids("test")
    folder = tmp_path / "held_out"
    for sample in held_out:
        (folder / sample).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(f"{source(tiny_run)}/{sample}", folder / sample)
    image = Image.open(folder / held_out[3]).copy()
    image.putpixel((20, 20), (1, 2, 3))
    image.save(folder / held_out[3])
    found = verify(tiny_bundle, data=folder)
    assert found.changed == [held_out[3]]
    assert found.files["model.onnx"].n == 11
    assert found.passed


def test_what_a_bundle_carries_is_bounded(tmp_path):
    recorder = Recorder(600)
    for start in range(0, 600, 64):
        rows = np.arange(start, min(start + 64, 600))
        values = np.repeat(rows.astype(np.float32)[:, None], 300_000, axis=1)  # 1.2 MB each
        recorder.add(Batch(values, rows, [str(row) for row in rows]), {"python": values[:, :3]})
    about = Metadata(("a", "b", "c"), "features", None, identity(None, 300_000), "feature set")
    recorder.save(tmp_path / "reference.safetensors", about)
    reference = Reference.load(tmp_path)
    assert len(reference.digests) == len(reference.answers["python"]) == 256
    assert reference.ids[:: len(reference.ids) - 1] == ["0", "599"]
    assert reference.answers["python"][:, 0].tolist() == [float(name) for name in reference.ids]
    assert 1 < len(reference.inputs) <= 8
    assert sum(values.nbytes for values in reference.inputs.values()) <= 8_000_000


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("k", 3),
        ("k", 2),
        ("outputs", ["logits", "topk_scores"]),
        ("outputs", ["logits", "topk_scores", "topk_indices", "probabilities"]),
        ("input.name", "pixels"),
        ("input.dtype", "uint8"),
        ("input.shape", ["batch", 3, 64, 64]),
        ("head.kind", "cosine"),
    ],
)
def test_a_manifest_that_was_edited_by_hand(copy, field, value):
    manifest = json.loads((copy / "manifest.json").read_text())
    outer, _, inner = field.partition(".")
    (manifest[outer] if inner else manifest)[inner or outer] = value
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DamagedFileError, match=rf"manifest\.json: {outer}: not what was exported"):
        verify(copy)
    report = json.loads((copy / "parity.json").read_text())
    report["manifest"] = field_hashes(manifest, without=("files", "created"))
    (copy / "parity.json").write_text(json.dumps(report))
    list_hash(copy / "parity.json")
    with pytest.raises(InputError, match=rf"model\.onnx: has {field} .*, manifest.json says .*: edited by hand"):
        verify(copy)
