"""A bundle's parts belong together, or it does not open."""

import json
import re
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.errors import DamagedFileError, InputError
from headsmith.core.files import sha256_file, sha256_json
from headsmith.export import Bundle, file_info, push, verify
from headsmith.export.label_agreement import read_labels, write_labels
from headsmith.export.metadata import check_labels

ODD = ['a,"b"', "<script>", "😀", "Ä", " leading", "10", "back\\slash", "tab\there"]


@pytest.fixture
def copy(tiny_bundle, tmp_path):
    return shutil.copytree(tiny_bundle.path, tmp_path / "copy")


def edit_manifest(folder, **changes):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | changes))


def test_the_folder(tiny_bundle):
    names = {path.name for path in tiny_bundle.path.iterdir()}
    files = {"model.onnx", "model.ts", "labels.txt", "README.md", "parity.json", "reference.safetensors"}
    assert names == files | {"manifest.json"}
    assert set(tiny_bundle.manifest.files) == files


def test_it_opens_again(tiny_bundle, copy):
    bundle = Bundle.load(copy)
    assert bundle.manifest == tiny_bundle.manifest
    assert bundle.class_names == ["cat", "dog", "emu", "fox", "gnu", "hen"]
    assert (copy / "labels.txt").read_text() == "cat\ndog\nemu\nfox\ngnu\nhen\n"


@pytest.mark.parametrize("name", ["model.onnx", "model.ts", "labels.txt", "parity.json", "README.md"])
def test_a_truncated_file_is_named(copy, name):
    (copy / name).write_bytes((copy / name).read_bytes()[:-1])
    with pytest.raises(InputError, match=f"{name}: .* bytes, manifest.json says .*: truncated"):
        Bundle.load(copy)


def test_a_file_of_another_bundle_is_named(copy):
    content = bytearray((copy / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (copy / "model.onnx").write_bytes(content)
    with pytest.raises(InputError, match=r"model\.onnx: not the file that manifest\.json lists \(its hash differs\)"):
        Bundle.load(copy)


def test_a_missing_file_is_named(copy):
    (copy / "model.ts").unlink()
    with pytest.raises(InputError, match=r"model\.ts: missing"):
        Bundle.load(copy)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["cat", "dog"], "2 labels for 6 outputs"),
        ([*"abcdefg"], "7 labels for 6 outputs"),
        ([*"abcdea"], "label 'a' found 2 times"),
        ([*"abcdef"], "the labels of manifest.json are not those of model.onnx"),
    ],
)
def test_labels_that_do_not_fit(copy, labels, message):
    edit_manifest(copy, labels=labels)
    with pytest.raises(InputError, match=message):
        Bundle.load(copy)


def test_labels_against_the_files_own(copy):
    """Manifest and labels.txt agree with each other, but not with what the model file says of itself."""
    labels = ["dog", "cat", "emu", "fox", "gnu", "hen"]
    write_labels(labels, copy / "labels.txt")
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["files"]["labels.txt"]["sha256"] = sha256_file(copy / "labels.txt")
    edit_manifest(copy, labels=labels, files=manifest["files"])
    bundle = Bundle.load(copy)
    with pytest.raises(InputError, match=r"model\.onnx: its labels differ from those of manifest\.json"):
        bundle.open()


def test_labels_txt_against_the_files_own(copy):
    write_labels([*"abcdef"], copy / "labels.txt")
    stated = {"sha256": sha256_file(copy / "labels.txt"), "bytes": (copy / "labels.txt").stat().st_size}
    edit_manifest(copy, files=json.loads((copy / "manifest.json").read_text())["files"] | {"labels.txt": stated})
    with pytest.raises(DamagedFileError, match=r"the labels of labels\.txt are not those of model\.onnx"):
        Bundle.load(copy)


def edit_mean(manifest):
    manifest["preprocessing"]["mean"] = [0.1, 0.2, 0.3]


def edit_mean_and_hash(manifest):
    edit_mean(manifest)
    manifest["preprocessing_sha256"] = sha256_json(manifest["preprocessing"])


def edit_input(manifest):
    manifest["input"]["format"] = "uint8-nhwc"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (edit_mean, r"manifest\.json: preprocessing: is not what preprocessing_sha256 was taken of"),
        (
            edit_mean_and_hash,
            r"model\.onnx: its preprocessing differ from|manifest\.json: .*preprocessing.*: not what was exported",
        ),
        (edit_input, r"model\.onnx: its input differ from|manifest\.json: .*input.*: not what was exported"),
    ],
)
@pytest.mark.parametrize("use", [verify, lambda folder: push(folder, "me/birds")], ids=["verify", "push"])
def test_an_edited_recipe_is_noticed(copy, edit, message, use):
    manifest = json.loads((copy / "manifest.json").read_text())
    edit(manifest)
    edit_manifest(copy, **manifest)
    with pytest.raises(DamagedFileError, match=message):
        use(copy)


@pytest.mark.parametrize(
    "key",
    ["labels", "preprocessing", "preprocessing_sha256", "input", "head", "parity", "versions", "features", "files"],
)
def test_a_manifest_that_lacks_something(copy, key):
    manifest = json.loads((copy / "manifest.json").read_text())
    del manifest[key]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DamagedFileError, match=rf"manifest\.json: {key}: missing, expected .*; export it again"):
        Bundle.load(copy)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"files": {}}, "`files` lists no model file"),
        ({"files": 3}, "files: found 3, expected an object; export it again"),
        ({"files": {"model.onnx": 3}}, r"files\.model\.onnx: found 3, expected an object"),
        (
            {"files": {"model.onnx": {"bytes": "1", "sha256": ""}}},
            r"files\.model\.onnx\.bytes: found '1', expected a",
        ),
        ({"files": {"model.onnx": {"bytes": 1, "sha256": ""}}}, r"`files` does not list labels\.txt"),
        ({"parity": {}}, r"`parity` does not list model\.onnx"),
        ({"labels": None}, "labels: found null, expected a list"),
        ({"preprocessing": [1]}, "preprocessing: found a list, expected an object"),
        ({"preprocessing": {"scale": float("nan")}}, r"preprocessing\.resize_mode: missing"),
        ({"input": "pixels"}, "input: found 'pixels', expected an object"),
        ({"lables": []}, "lables: is no field of this version; did you mean labels"),
    ],
)
def test_a_malformed_manifest_is_one_line(copy, changes, message):
    edit_manifest(copy, **changes)
    result = CliRunner().invoke(app, ["verify", str(copy)])
    assert result.exit_code == 2
    assert re.search(message, result.stderr)
    assert result.stderr.count("\n") == 1
    with pytest.raises(DamagedFileError):
        Bundle.load(copy)


@pytest.mark.parametrize("name", ["../photo.png", "a/../../photo.png", "/etc/hosts", "C:\\photo.png", "..\\photo.png"])
def test_files_outside_of_the_folder(copy, name):
    (copy.parent / "photo.png").write_bytes(b"private")
    stated = {"sha256": sha256_file(copy.parent / "photo.png"), "bytes": 7}
    edit_manifest(copy, files=json.loads((copy / "manifest.json").read_text())["files"] | {name: stated})
    with pytest.raises(DamagedFileError, match="expected files inside the bundle's folder"):
        push(copy, "me/birds")


@pytest.mark.parametrize("name", ["birds", "a/b/c", "me/", "hf:birds", "my birds/x"])
def test_a_name_that_is_no_repository(tiny_bundle, name):
    with pytest.raises(InputError, match="is no name of a repository, expected USER/REPO"):
        push(tiny_bundle, name)


def test_info_of_a_folder_that_is_no_bundle(tmp_path):
    with pytest.raises(InputError, match=r"is no bundle \(no manifest\.json in it\)"):
        file_info(tmp_path)


def test_a_format_that_was_not_exported(copy):
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["files"].pop("model.ts")
    edit_manifest(copy, files=manifest["files"])
    with pytest.raises(InputError, match=r"holds no model\.ts; export it again with `formats` torchscript"):
        Bundle.load(copy).open("torchscript")


def test_another_folder_is_no_bundle(tmp_path):
    with pytest.raises(InputError, match="no such bundle; `headsmith export` makes one"):
        Bundle.load(tmp_path / "gone")
    with pytest.raises(InputError, match=r"manifest\.json: not found"):
        Bundle.load(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": "headsmith.features"}')
    with pytest.raises(InputError, match=r"expected 'headsmith\.bundle' 1"):
        Bundle.load(tmp_path)


def test_both_formats_open_and_agree(tiny_bundle):
    pixels = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    answers = [tiny_bundle.open(name).run(pixels) for name in ("onnx", "torchscript")]
    np.testing.assert_allclose(answers[0].logits, answers[1].logits, atol=1e-4)


def test_odd_labels_come_back(tmp_path):
    write_labels(ODD, tmp_path / "labels.txt")
    assert read_labels(tmp_path / "labels.txt") == ODD
    assert (tmp_path / "labels.txt").read_text(encoding="utf-8").splitlines() == ODD
    assert check_labels(ODD, len(ODD), "here") == tuple(ODD)


@given(st.text())
def test_a_label_is_refused_or_is_one_line(label):
    try:
        check_labels([label], 1, "here")
    except InputError as error:
        assert label.splitlines() != [label]
        assert "\n" not in str(error)
    else:
        assert f"{label}\n".splitlines() == [label]
