"""Evaluation of the exported file: the numbers are those of its own logits."""

import csv
import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.metrics import top_k_accuracy_score

import headsmith.evaluate.measurement as measurement
from headsmith.evaluate import evaluate_classifier
from headsmith.evaluate.old_result import doubts
from headsmith.export import Bundle, export_classifier
from headsmith.models import InputError
from headsmith.models.images import UnreadableImage
from headsmith.trainer import extract, train

TIMM = ["model", "img_size", "top1", "top1_err", "top5", "top5_err", "param_count", "crop_pct", "interpolation"]


@pytest.fixture(scope="module")
def images(image_folder, tiny_bundle):
    """Held-out images with harder classes than those of the training: 7 each, so that batches do not come out even."""
    folder = image_folder(dict.fromkeys(tiny_bundle.class_names, 7), size=45)
    for number, path in enumerate(sorted(folder.glob("*/*.png"))):
        if number % 3 == 0:
            noise = np.random.default_rng(number).integers(0, 256, (45, 45, 3), dtype=np.uint8)
            Image.fromarray(noise).save(path)
    return folder


@pytest.fixture(scope="module")
def evaluated(tiny_bundle, images, tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    return evaluate_classifier(tiny_bundle.path, data=images, out=out, batch_size=8, save_logits=True), out


def test_accuracies_are_scikit_learns_of_the_files_own_logits(evaluated):
    result, out = evaluated
    saved = np.load(out / "logits.npz")
    assert saved["logits"].shape == (42, 6)
    for k, found in ((1, result.top1), (5, result.top5)):
        assert found == top_k_accuracy_score(saved["labels"], saved["logits"], k=k, labels=range(6))
    assert 0 < result.top1 < 1
    assert result.n == 42


def test_nothing_depends_on_the_batch_size(tiny_bundle, images, evaluated):
    other = evaluate_classifier(tiny_bundle, data=str(images), batch_size=64)
    assert (other.n, other.top1, other.top5) == (evaluated[0].n, evaluated[0].top1, evaluated[0].top5)


def test_the_table_has_timms_columns_first_in_per_cent(evaluated):
    result, out = evaluated
    with (out / "results.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert list(row)[: len(TIMM)] == TIMM
    assert float(row["top1"]) == pytest.approx(100 * result.top1, abs=1e-4)
    assert float(row["top1"]) + float(row["top1_err"]) == pytest.approx(100)
    assert float(row["top5_low"]) == pytest.approx(100 * result.top5_interval[0], abs=1e-4)
    assert (row["img_size"], row["crop_pct"], row["interpolation"]) == ("32", "0.97", "bilinear")


def test_the_record_holds_everything(evaluated, tiny_bundle):
    result, out = evaluated
    record = json.loads((out / "results.json").read_text())
    assert record == json.loads(json.dumps(dataclasses.asdict(result)))
    assert record["provider"] == "CPUExecutionProvider"
    assert record["model_sha256"] == tiny_bundle.manifest["files"]["model.onnx"]["sha256"]
    assert record["preprocessing_sha256"] == tiny_bundle.preprocessing.digest
    assert record["images_per_second"] >= record["images_per_second_overall"] > 0


def test_predictions_are_in_the_order_of_the_data(evaluated):
    result, out = evaluated
    with (out / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    saved = np.load(out / "logits.npz")
    assert [row["id"] for row in rows] == saved["ids"].tolist() == sorted(saved["ids"].tolist())
    assert sum(row["rank"] == "1" for row in rows) / len(rows) == result.top1
    assert all((row["rank"] == "1") == (row["label1"] == row["label"]) for row in rows)
    probabilities = torch.from_numpy(saved["logits"]).softmax(1).max(1).values.numpy()
    np.testing.assert_allclose([float(row["score1"]) for row in rows], probabilities, atol=1e-6)


def test_results_are_written_without_being_asked(tiny_bundle, images):
    result = evaluate_classifier(tiny_bundle, data=images)
    assert result.out == str(Path("results", tiny_bundle.path.name))
    assert {path.name for path in Path(result.out).iterdir()} == {"results.json", "results.csv", "predictions.csv"}


def test_the_training_source_is_scored_on_its_held_out_part(tiny_run, tiny_bundle):
    result = evaluate_classifier(tiny_bundle, data=tiny_run.record["features"]["source"]["source"])
    assert result.n == 12
    card = tiny_bundle.manifest["accuracy"]["model.onnx"]
    assert (result.top1, result.top5) == (card["top1"]["value"], card["top5"]["value"])


def test_a_head_alone_is_scored_on_a_feature_set(tiny_run, tmp_path):
    bundle = export_classifier(tiny_run, out=tmp_path / "head", head_only=True)
    result = evaluate_classifier(bundle, data=tiny_run.record["features"]["path"], out=tmp_path / "out")
    test = tiny_run.record["results"]["test"]
    assert (result.n, result.top1, result.top5) == (12, test["top1"], test["top5"])
    assert result.image_size is None


def test_a_class_that_training_never_saw(tiny_bundle, image_folder, tmp_path):
    data = image_folder({"cat": 2, "gnus": 2})
    with pytest.raises(InputError, match=r"class 'gnus' is not among the 6 labels .* did you mean gnu\?"):
        evaluate_classifier(tiny_bundle, data=data, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_unreadable_images_are_left_out_and_listed(tiny_bundle, image_folder, tmp_path):
    data = image_folder({"cat": 3, "dog": 2})
    (data / "cat" / "001.png").write_bytes((data / "cat" / "001.png").read_bytes()[:100])
    result = evaluate_classifier(tiny_bundle, data=data)
    assert result.n == 4
    assert [entry["id"] for entry in result.unreadable] == ["cat/001.png"]
    with pytest.raises(UnreadableImage, match=r"cat/001\.png"):
        evaluate_classifier(tiny_bundle, data=data, strict=True)


def test_no_readable_image(tiny_bundle, image_folder):
    data = image_folder({"cat": 1})
    (data / "cat" / "000.png").write_text("text")
    with pytest.raises(InputError, match="none of the 1 held-out inputs could be read"):
        evaluate_classifier(tiny_bundle, data=data)


def test_a_truncated_model(tiny_bundle, images, tmp_path):
    copy = shutil.copytree(tiny_bundle.path, tmp_path / "copy")
    (copy / "model.onnx").write_bytes((copy / "model.onnx").read_bytes()[:1000])
    with pytest.raises(InputError, match=r"model\.onnx: 1000 bytes"):
        evaluate_classifier(copy, data=images)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_cuda_without_cuda(tiny_bundle, images, tmp_path):
    with pytest.raises(InputError, match="--provider"):
        evaluate_classifier(tiny_bundle, data=images, provider="cuda", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_fewer_classes_than_5(image_folder, tiny_backbone, tmp_path):
    data = image_folder(dict.fromkeys(("x", "y", "z"), 12))
    features = extract(data, out=tmp_path / "features", **tiny_backbone._asdict())
    run = train(features, out=tmp_path / "run", epochs=5, device="cpu")
    bundle = export_classifier(run, out=tmp_path / "bundle", head_only=True)
    result = evaluate_classifier(bundle, data=tmp_path / "features", out=tmp_path / "out")
    assert (result.top5, result.top5_interval) == (None, None)
    assert json.loads((tmp_path / "out" / "results.json").read_text())["top5"] is None
    assert "not applicable" in (tmp_path / "bundle" / "README.md").read_text()
    assert (
        (tmp_path / "out" / "predictions.csv")
        .read_text()
        .startswith("id,label,rank,label1,score1,label2,score2,label3")
    )


def test_nan_is_wrong_and_said(tiny_bundle, images, monkeypatch, tmp_path):
    timed = measurement._timed

    def damaged(model, inputs):
        outputs, seconds = timed(model, inputs)
        outputs.logits[:, 0] = np.nan
        return outputs, seconds

    monkeypatch.setattr(measurement, "_timed", damaged)
    result = evaluate_classifier(tiny_bundle, data=images, out=tmp_path)
    assert (result.top1, result.top5, result.not_finite) == (0, 0, 42)
    assert "42 inputs have NaN or infinite logits" in result.flags
    with (tmp_path / "predictions.csv").open(newline="") as file:
        assert {row["rank"] for row in csv.DictReader(file)} == {""}


def quiet(**changes):
    usual = {
        "top1_low": 0.5,
        "num_classes": 1000,
        "predicted_share": 0.01,
        "label_share": 0.01,
        "not_finite": 0,
        "inconsistent": 0,
        "trained_on": False,
    }
    return doubts(**(usual | changes))


def test_doubts():
    assert quiet() == []
    assert "chance level" in quiet(top1_low=0.001)[0]
    assert quiet(top1_low=0.002) == []
    assert quiet(predicted_share=0.95) == ["one class takes 95% of the predictions"]
    assert quiet(predicted_share=0.95, label_share=0.94) == []
    assert "against the file's own logits" in quiet(inconsistent=3)[0]


def test_a_file_of_another_order_is_scored_by_name(tiny_bundle, images, evaluated, tmp_path):
    """The data's classes in another order than the labels': same folder names, same accuracy."""
    data = tmp_path / "split"
    shutil.copytree(images, data / "test", ignore=shutil.ignore_patterns("cat"))
    shutil.copytree(images, data / "train")
    result = evaluate_classifier(Bundle.load(tiny_bundle.path), data=data, out=tmp_path / "out")
    with (tmp_path / "out" / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["id"].split("/")[1] == row["label"] for row in rows)
    with (evaluated[1] / "predictions.csv").open(newline="") as file:
        before = {row["id"]: row["label1"] for row in csv.DictReader(file)}
    assert {row["id"].removeprefix("test/"): row["label1"] for row in rows}.items() <= before.items()
    assert result.n == 35


def test_training_images_are_doubted(image_folder, tiny_backbone, tmp_path):
    images = image_folder({split: {"cat": 6, "dog": 6} for split in ("train", "val", "test")})
    features = extract(images, out=tmp_path / "features", **tiny_backbone._asdict())
    bundle = export_classifier(train(features, out=tmp_path / "run", epochs=2), out=tmp_path / "bundle")
    seen = evaluate_classifier(bundle, data=images / "train")
    unseen = evaluate_classifier(bundle, data=images / "test")
    assert [flag for flag in seen.flags if "trained on these images" in flag]
    assert not [flag for flag in unseen.flags if "trained on" in flag]
