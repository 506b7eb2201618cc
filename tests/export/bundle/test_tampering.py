"""What no hash of a file covers: fields of a manifest that were edited, and model files that it does not list."""

import json
import pickle
import shutil
from copy import deepcopy
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.errors import DamagedFileError
from headsmith.core.files import read_json, sha256_file
from headsmith.core.records import field_hashes, to_json
from headsmith.export import export_classifier, verify
from headsmith.export.bundle.bundle import Bundle
from headsmith.export.bundle.manifest import read_manifest
from headsmith.export.bundle.tampering import check_fields
from headsmith.export.parity.verification_data import Reference


@pytest.fixture
def copy(tiny_bundle, tmp_path):
    return shutil.copytree(tiny_bundle.path, tmp_path / "copy")


@pytest.fixture
def edit(copy):
    """A function: what it does to the manifest, is done; the hashes of all listed files are brought up to date.

    Those of the fields too where the edited manifest is to be ``signed``.
    """

    def run(change, signed=False):
        manifest = read_json(copy / "manifest.json")
        change(manifest)
        if signed:
            hashes = field_hashes(manifest, without=("files", "created"))
            (copy / "parity.json").write_text(json.dumps(read_json(copy / "parity.json") | {"manifest": hashes}))
        for name in manifest["files"]:
            path = copy / name
            manifest["files"][name] = {"sha256": sha256_file(path), "bytes": path.stat().st_size}
        (copy / "manifest.json").write_text(json.dumps(manifest))
        return copy

    return run


def leaves(value, path=()):
    if isinstance(value, dict) and value:
        return [leaf for key, one in value.items() for leaf in leaves(one, (*path, key))]
    return [path]


def other(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x" if isinstance(value, str) else "something"


def test_every_field_that_is_edited_is_refused(tiny_bundle, copy):
    written = read_json(copy / "manifest.json")
    places = [path for path in leaves(written) if path[0] not in ("files", "created")]
    assert len(places) > 80
    check_fields(tiny_bundle)
    for path in places:
        manifest = deepcopy(written)
        found = manifest
        for key in path[:-1]:
            found = found[key]
        found[path[-1]] = other(found[path[-1]])
        (copy / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(DamagedFileError, match=rf"manifest\.json: {path[0]}: not what was exported"):
            check_fields(replace(tiny_bundle, path=copy))


def test_verify_looks_at_fields_that_no_file_repeats(edit):
    def change(manifest):
        manifest["held_out"]["n"] += 1

    with pytest.raises(DamagedFileError, match="held_out: not what was exported, by the hash in parity.json"):
        verify(edit(change))


@pytest.mark.parametrize("path", ["k", "outputs", "held_out", "accuracy", "labels_sha256", "input.name", "head.kind"])
def test_a_field_that_is_left_out_is_refused(copy, path):
    manifest = read_json(copy / "manifest.json")
    outer, _, inner = path.partition(".")
    del (manifest[outer] if inner else manifest)[inner or outer]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DamagedFileError, match=rf"manifest\.json: {path}: missing, expected .*; export it again"):
        read_manifest(copy / "manifest.json")


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("k", "4", "k: found '4', expected a whole number"),
        ("k", 4.0, "k: found 4.0, expected a whole number"),
        ("held_out.n", "2", "held_out.n: found '2', expected a whole number"),
        ("head.num_classes", True, "head.num_classes: found true, expected a whole number"),
        ("input.dtype", 1, "input.dtype: found 1, expected text"),
    ],
)
def test_a_value_of_another_kind_is_told_as_such(edit, path, value, told):
    def change(manifest):
        outer, _, inner = path.partition(".")
        (manifest[outer] if inner else manifest)[inner or outer] = value

    with pytest.raises(DamagedFileError, match=rf"manifest\.json: {told}"):
        verify(edit(change))


@pytest.mark.parametrize("value", [7, None, [7]])
def test_outputs_that_are_no_names(edit, value):
    with pytest.raises(
        DamagedFileError, match=r"manifest\.json: outputs.*: found .*, expected (a list|text); export it"
    ):
        verify(edit(lambda manifest: manifest.update(outputs=value)))


@pytest.mark.parametrize("value", [{"a": [1]}, "1", None, [2]])
def test_an_allowed_difference_that_is_no_number(copy, edit, value):
    def change(manifest):
        manifest["parity"]["model.onnx"]["allowed_difference"] = value

    result = CliRunner().invoke(app, ["verify", str(edit(change))])
    assert result.exit_code == 2
    assert "allowed_difference" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "name", ["model.pt2", "other.onnx", "model.safetensors", "model.onnx.data", "triton/tiny/2/model.onnx"]
)
def test_a_model_file_that_is_not_listed_is_refused(copy, name):
    (copy / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(copy / "model.onnx", copy / name)
    with pytest.raises(DamagedFileError, match=rf"{name}: is in the bundle, but manifest\.json does not list it"):
        verify(copy)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("evil.py", b"print()"),
        ("code/deep/evil.PY", b""),
        ("weights.bin", b""),
        ("answers.PKL", pickle.dumps([])),
        ("notes.txt", pickle.dumps([])),
        ("run", b"#!/bin/sh\n"),
        ("tool", b"\x7fELF\x02\x01"),
        ("tool.dat", b"MZ\x90"),
    ],
)
def test_programs_and_pickles_that_are_not_listed_are_refused(copy, name, content):
    (copy / name).parent.mkdir(parents=True, exist_ok=True)
    (copy / name).write_bytes(content)
    with pytest.raises(DamagedFileError, match=rf"{name}: is in the bundle, but manifest\.json does not list it"):
        verify(copy)


def test_what_is_no_model_may_lie_beside_and_is_named(copy):
    assert verify(copy).warnings == []
    (copy / ".gitattributes").write_text("*.onnx filter=lfs")  # the hub's own
    (copy / "pictures").mkdir()
    (copy / "pictures" / "one.png").write_bytes(b"\x89PNG")
    (copy / "notes.txt").write_text("mine")
    found = verify(copy)
    assert found.passed
    [warning] = found.warnings
    assert warning.code == "unlisted"
    assert warning.message.startswith("notes.txt, pictures/one.png: are in the bundle, but manifest.json does not list")
    printed = CliRunner().invoke(app, ["verify", str(copy)]).stdout
    assert "warning (unlisted): notes.txt, pictures/one.png" in " ".join(printed.split())


@pytest.mark.parametrize("name", ["model.onnx", "labels.txt"])
def test_a_link_out_of_the_bundle_is_told(copy, tmp_path, name):
    (copy / name).rename(tmp_path / "elsewhere")
    (copy / name).symlink_to(tmp_path / "elsewhere")
    [warning] = verify(copy).warnings
    assert (warning.code, warning.message.startswith(f"{name}: a symbolic link to a file outside")) == (
        "link-out",
        True,
    )
    (copy / name).unlink()
    (tmp_path / "elsewhere").rename(copy / "moved")
    (copy / name).symlink_to("moved")
    assert [found.code for found in verify(copy).warnings] == ["unlisted"]  # one inside goes with the folder


def test_nothing_is_opened_before_hashes_are_compared(copy, edit, monkeypatch):
    monkeypatch.setattr(Bundle, "open", lambda *_, **__: pytest.fail("opened"))
    monkeypatch.setattr(Reference, "load", lambda *_: pytest.fail("opened"))
    with pytest.raises(DamagedFileError, match="training: not what was exported, by the hash"):
        verify(edit(lambda manifest: manifest["training"].update(seed=7)))


def test_a_file_that_is_dropped_from_the_list_is_refused(copy, edit):
    with pytest.raises(DamagedFileError, match=r"model\.ts: is in the bundle"):
        verify(edit(lambda manifest: manifest["files"].pop("model.ts")))
    (copy / "model.ts").unlink()
    with pytest.raises(DamagedFileError, match=r"parity: found model\.onnx, model\.ts, expected the model files model"):
        verify(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record.pop("manifest"), r"parity\.json: manifest: expected an object"),
        (lambda record: record.update(manifest=None), r"parity\.json: manifest: expected an object"),
        (lambda record: record["manifest"].clear(), r"manifest\.json: accuracy, .*not what was exported"),
        (lambda record: record["manifest"].pop("labels"), r"manifest\.json: labels: not what was exported"),
    ],
)
def test_who_takes_the_hashes_of_fields_away_does_not_switch_off_their_check(copy, edit, change, message):
    record = read_json(copy / "parity.json")
    change(record)
    (copy / "parity.json").write_text(json.dumps(record))
    with pytest.raises(DamagedFileError, match=f"{message}.*export it again"):
        verify(edit(lambda manifest: None))


def widen(manifest):
    for measured in manifest["parity"].values():
        measured["tolerance"] = measured["allowed_difference"] = 1e9
        measured["share"] = 1e9


def shifted(copy, share):
    """A file whose logits are all off by a share of the largest."""
    largest = read_json(copy / "parity.json")["files"]["model.onnx"]["largest_logit"]
    model = onnx.load(copy / "model.onnx")
    gemm = next(node for node in reversed(model.graph.node) if node.op_type in ("Gemm", "MatMul", "Add"))
    bias = next(tensor for tensor in model.graph.initializer if tensor.name in gemm.input and len(tensor.dims) == 1)
    values = numpy_helper.to_array(bias) + np.float32(share * largest)
    bias.CopyFrom(numpy_helper.from_array(values, bias.name))
    onnx.save(model, copy / "model.onnx")


@pytest.mark.parametrize(("share", "passes"), [(3e-3, False), (3e-4, True)])
def test_no_bundle_allows_more_than_a_thousandth_of_the_largest_logit(copy, edit, share, passes):
    shifted(copy, share)
    assert verify(edit(widen, signed=True)).passed == passes


def test_a_tolerance_that_was_asked_for_is_recorded(tiny_run, tiny_bundle, tmp_path):
    assert 0 < tiny_bundle.manifest.parity["model.onnx"].share <= 1e-3
    asked = export_classifier(tiny_run, out=tmp_path / "asked", tolerance=0.01)
    assert asked.manifest.parity["model.onnx"].share is None
    assert verify(asked).passed


def test_nan_is_told_where_it_is_the_reason(copy, edit):
    model = onnx.load(copy / "model.onnx")
    (node,) = (node for node in model.graph.node if "logits" in node.output)
    node.output[list(node.output).index("logits")] = "sound"
    model.graph.initializer.append(numpy_helper.from_array(np.float32(np.nan), "nan"))
    model.graph.node.insert(
        list(model.graph.node).index(node) + 1, helper.make_node("Add", ["sound", "nan"], ["logits"])
    )
    onnx.save(model, copy / "model.onnx")
    result = CliRunner().invoke(app, ["verify", str(edit(lambda manifest: None))])
    assert result.exit_code == 3
    row = next(line for line in result.stdout.splitlines() if "model.onnx" in line and "different" in line)
    assert "NaN or" in row  # the cell has two lines on a narrow terminal


def test_a_file_that_cannot_run_is_one_line(copy, edit, capfd):
    """An index out of range shows at run time alone, and onnxruntime logs it in colour beside what it raises."""
    model = onnx.load(copy / "model.onnx")
    (top,) = (node for node in model.graph.node if node.op_type == "TopK")
    after = list(model.graph.node).index(top) + 1
    name, top.output[1] = top.output[1], "inside"
    model.graph.initializer.append(numpy_helper.from_array(np.int64(100), "much"))
    model.graph.node.insert(after, helper.make_node("Add", ["inside", "much"], [name]))
    onnx.save(model, copy / "model.onnx")
    result = CliRunner().invoke(app, ["verify", str(edit(lambda manifest: None))])
    captured = capfd.readouterr()
    assert captured.err + captured.out == ""
    assert result.exit_code == 3
    assert result.stderr.count("\n") == 1
    assert result.stderr.count("model.onnx") == 1
    assert "/onnxruntime_src" not in result.stderr


def test_descriptions_that_were_edited_are_noticed(copy, edit):
    model = onnx.load(copy / "model.onnx")
    about = {entry.key: entry.value for entry in model.metadata_props}
    names = json.loads(about["label_descriptions"])
    about["label_descriptions"] = json.dumps(names | {next(iter(names)): "poison"})
    helper.set_model_props(model, about)
    onnx.save(model, copy / "model.onnx")
    result = CliRunner().invoke(app, ["verify", str(edit(lambda manifest: None))])
    assert result.exit_code == 3
    assert "its descriptions differ from those" in result.stderr


def test_a_manifest_is_read_as_it_was_written(tiny_bundle):
    assert to_json(tiny_bundle.manifest) == read_json(tiny_bundle.path / "manifest.json")
