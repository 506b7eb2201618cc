"""What evaluations refuse, leave out or warn of."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from evaluated_tables import rows_of
from PIL import Image

import headsmith.evaluate.measuring.one_classifier as one_classifier
import headsmith.evaluate.measuring.one_pass as measurement
from headsmith.core.coded_warnings import CodedWarning
from headsmith.core.errors import InputError
from headsmith.evaluate import evaluate_classifiers, load_results
from headsmith.export import export_classifier
from headsmith.trainer import extract, train


def test_what_was_done_with_transparency_and_odd_modes_is_told(tiny_bundle, image_folder, tmp_path):
    folder = image_folder(dict.fromkeys(tiny_bundle.class_names, 2))
    for name in tiny_bundle.class_names[:4]:
        with Image.open(folder / name / "000.png") as image:
            image.putalpha(100)
            image.save(folder / name / "000.png")
    with Image.open(folder / "emu" / "001.png") as image:
        image.convert("CMYK").save(folder / "emu" / "001.jpg")
    (result,) = evaluate_classifiers(tiny_bundle, data=folder, out=tmp_path / "results", batch_size=5)
    assert result.notes[-2:] == [
        "4 images with transparency, composited on (255, 255, 255)",
        "1 image with CMYK pixels, converted",
    ]


@pytest.fixture(scope="module")
def told(tiny_bundle, image_folder, tmp_path_factory):
    """Where, and what the command prints of two models and images with a stray file and transparency."""
    where = tmp_path_factory.mktemp("told")
    folder = Path(shutil.move(image_folder(dict.fromkeys(tiny_bundle.class_names, 2)), where / "holiday"))
    (folder / "cat" / "notes.txt").write_text("x")
    with Image.open(folder / "cat" / "000.png") as image:
        image.putalpha(100)
        image.save(folder / "cat" / "000.png")
    models = [str(tiny_bundle.path), str(tiny_bundle.path / "model.ts")]
    command = [sys.executable, "-m", "headsmith", "evaluate", *models, "--data", "holiday", "--out", "out"]
    return where, subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=120, check=False)


def test_each_fact_of_the_held_out_images_is_said_once(told):
    _, found = told
    assert found.returncode in (0, 4), found.stderr
    lines = [line for line in found.stderr.splitlines() if line.startswith("headsmith: ")]
    assert lines == ["headsmith: holiday: skipped files that are not images by their suffix or kind: 1 .txt"]
    assert found.stdout.count("1 image with transparency, composited on") == 1
    assert found.stdout.count("sanity probe") == 1


def test_the_path_of_the_data_stays_as_it_was_given(told):
    """Results travel: nobody needs to see whose machine they were measured on."""
    where, found = told
    assert "\nholiday: 2 models on 12 images" in found.stdout
    results = load_results(where / "out")
    assert {results.data.name, results.data.source.data, *(one.setup.data for one in results)} == {"holiday"}
    for path in (where / "out").rglob("*"):
        assert path.is_dir() or str(where / "holiday").encode() not in path.read_bytes(), path
    assert results.image(results.predictions(0).ids[0]).size == (40, 40)  # also from the folder where this test runs


def test_a_model_that_fails_stays_in_the_table(tiny_bundle, images, tmp_path, onnx_file):
    copy = shutil.copytree(tiny_bundle.path, tmp_path / "copy")
    (copy / "model.onnx").write_bytes((copy / "model.onnx").read_bytes()[:1000])
    results = evaluate_classifiers([copy, tiny_bundle.path], data=images, out=tmp_path / "out")
    assert [result.model for result in results] == ["tiny"]
    (failed,) = results.failed
    assert (failed.model, failed.source) == ("copy", str(copy))
    assert "model.onnx: 1000 bytes" in failed.error
    assert [row["error"] != "" for row in rows_of(results.path)] == [False, True]


def test_no_model_that_works(tiny_bundle, images, tmp_path):
    copy = shutil.copytree(tiny_bundle.path, tmp_path / "copy")
    (copy / "model.onnx").write_bytes((copy / "model.onnx").read_bytes()[:1000])
    with pytest.raises(InputError, match=r"model\.onnx: 1000 bytes"):
        evaluate_classifiers(copy, data=images)


def test_a_class_that_training_never_saw(tiny_bundle, image_folder, tmp_path):
    data = image_folder({"cat": 2, "gnus": 2})
    with pytest.raises(InputError, match="such as 'gnus'; did you mean gnu"):
        evaluate_classifiers(tiny_bundle, data=data, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_unreadable_images_are_left_out_and_listed(tiny_bundle, image_folder):
    data = image_folder({"cat": 3, "dog": 2})
    (data / "cat" / "001.png").write_bytes((data / "cat" / "001.png").read_bytes()[:100])
    result = evaluate_classifiers(tiny_bundle, data=data)[0]
    assert result.n == 4
    assert [one.id for one in result.unreadable] == ["cat/001.png"]
    with pytest.raises(InputError, match=r"cat/001\.png"):
        evaluate_classifiers(tiny_bundle, data=data, strict=True, out="strict")
    assert not Path("strict").exists()


def test_images_that_are_there_twice_are_counted(tiny_bundle, image_folder):
    data = image_folder({"cat": 3, "dog": 2})
    for name in ("dog/copy.png", "dog/again.png"):
        shutil.copy(data / "cat" / "001.png", data / name)
    result = evaluate_classifiers(tiny_bundle, data=data)[0]
    assert (result.n, result.duplicates) == (7, 2)


def test_no_readable_image(tiny_bundle, image_folder):
    data = image_folder({"cat": 1})
    (data / "cat" / "000.png").write_text("text")
    with pytest.raises(InputError, match="none of the 1 held-out inputs could be read"):
        evaluate_classifiers(tiny_bundle, data=data)
    assert not Path("results").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_cuda_without_cuda(tiny_bundle, images, tmp_path):
    with pytest.raises(InputError, match="provider"):
        evaluate_classifiers(tiny_bundle, data=images, provider="cuda", out=tmp_path / "out")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"k": (0, 5)}, "^k: 0 found"),
        ({"batch_size": 0}, "^batch_size: 0"),
        ({"threads": 0}, "^threads: 0"),
        ({"provider": "tpu"}, "^provider tpu"),
        ({"against": "jax"}, "^against: 'jax' found, expected one of torch"),
        ({"group_column": "camera"}, "^group_column: .* has no columns"),
    ],
)
def test_options_that_mean_nothing(tiny_bundle, images, asked, said):
    with pytest.raises(InputError, match=said):
        evaluate_classifiers(tiny_bundle, data=images, **asked)
    assert not Path("results").exists()


def test_nodes_that_the_provider_does_not_run(tiny_bundle, images, monkeypatch, tmp_path):
    monkeypatch.setattr(one_classifier, "misplaced_nodes", lambda *_: ["TopK", "Softmax", "TopK"])
    with pytest.raises(InputError, match=r"3 nodes \(Softmax, TopK\) do not run on .* `allow_fallback`"):
        evaluate_classifiers(tiny_bundle, data=images, out=tmp_path)
    assert evaluate_classifiers(tiny_bundle, data=images, out=tmp_path, allow_fallback=True)[0].n == 42


def test_nan_is_wrong_and_said(tiny_bundle, images, monkeypatch, tmp_path):
    timed = measurement._timed

    def damaged(model, inputs):
        outputs, seconds = timed(model, inputs)
        outputs.logits[:, 0] = np.nan
        return outputs, seconds

    monkeypatch.setattr(measurement, "_timed", damaged)
    results = evaluate_classifiers(tiny_bundle, data=images, out=tmp_path)
    result = results[0]
    assert (result.top1.value, result.top5.value, result.not_finite) == (0, 0, 42)
    assert CodedWarning("no-answer", "every one of 42 inputs has NaN among its logits") in result.warnings
    assert result.worthless
    assert set(results.predictions(0).scores.topk_indices[:, 0]) == {-1}


def test_training_images_are_warned_of(image_folder, tiny_backbone, tmp_path):
    images = image_folder({split: {"cat": 6, "dog": 6} for split in ("train", "val", "test")})
    features = extract(images, out=tmp_path / "features", **tiny_backbone._asdict())
    bundle = export_classifier(train(features, out=tmp_path / "run", epochs=2), out=tmp_path / "bundle")
    seen = evaluate_classifiers(bundle, data=images / "train")[0]
    unseen = evaluate_classifiers(bundle, data=images / "test")[0]
    assert "trained-on" in [one.code for one in seen.warnings]
    assert "trained-on" not in [one.code for one in unseen.warnings]


@pytest.mark.parametrize("k", [(7,), (1, 2, 7)])
def test_a_k_above_the_number_of_classes_is_refused(tiny_bundle, images, tmp_path, k):
    told = r"has 6 classes, so that top-7 is always right; give `k` of at most 6"
    with pytest.raises(InputError, match=told):
        evaluate_classifiers(tiny_bundle, data=images, out=tmp_path / "results", k=k)


@pytest.mark.parametrize("inside", ["", "cat", "new"])
def test_results_are_not_written_among_the_images(tiny_bundle, image_folder, inside):
    data = image_folder({"cat": 1, "dog": 1})
    before = sorted(data.rglob("*"))
    with pytest.raises(InputError, match=r"^out .*: is inside the images or features"):
        evaluate_classifiers(tiny_bundle, data=data, out=data / inside)
    assert sorted(data.rglob("*")) == before


def test_results_are_not_written_into_a_feature_set(tiny_run, tmp_path):
    head = export_classifier(tiny_run, out=tmp_path / "head", head_only=True)
    features = shutil.copytree(tiny_run.record.features.path, tmp_path / "features")
    before = sorted(features.rglob("*"))
    with pytest.raises(InputError, match=r"^out .*: is inside the images or features"):
        evaluate_classifiers(head, data=features, out=features)
    assert sorted(features.rglob("*")) == before
