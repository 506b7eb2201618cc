"""Evaluation of exported files: the numbers are those of their own logits."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from evaluated_tables import rows_of
from huggingface_hub.repocard_data import model_index_to_eval_results
from PIL import Image
from sklearn.metrics import log_loss, top_k_accuracy_score
from statsmodels.stats.contingency_tables import mcnemar

import headsmith.evaluate.evaluation as evaluation
import headsmith.evaluate.measuring.one_classifier as one_classifier
from headsmith.core.errors import InputError
from headsmith.evaluate import evaluate_classifiers, load_results
from headsmith.evaluate.measuring.timing_in_turns import Effort
from headsmith.evaluate.metrics import summarize
from headsmith.export import Bundle, export_classifier
from headsmith.trainer import extract, train

TIMM = ["model", "img_size", "top1", "top1_err", "top5", "top5_err", "param_count", "crop_pct", "interpolation"]


@pytest.fixture(scope="module")
def evaluated(tiny_bundle, images, tmp_path_factory):
    """Two models: a bundle's ONNX file and its TorchScript file, called model."""
    out = tmp_path_factory.mktemp("results")
    models = [tiny_bundle.path, tiny_bundle.path / "model.ts"]
    return evaluate_classifiers(models, data=images, out=out, batch_size=8, k=(1, 3, 5), save_logits=True)


def logits_of(results, which=0):
    return np.load(results.path / "models" / results[which].key / "logits.npz")


def test_accuracies_are_scikit_learns_of_the_files_own_logits(evaluated):
    result, saved = evaluated["tiny"], logits_of(evaluated, "tiny")
    assert saved["logits"].shape == (42, 6)
    for k in (1, 3, 5):
        found = result.summary.top[k].value
        assert found == top_k_accuracy_score(saved["labels"], saved["logits"], k=k, labels=range(6))
    probabilities = torch.from_numpy(saved["logits"]).double().softmax(1).numpy()
    assert result.summary.nll == pytest.approx(log_loss(saved["labels"], probabilities, labels=range(6)))
    assert 0 < result.top1.value < 1
    assert result.n == 42


def test_nothing_depends_on_the_batch_size(tiny_bundle, images, evaluated):
    other = evaluate_classifiers(tiny_bundle, data=str(images), batch_size=64)[0]
    assert (other.n, other.top1, other.top5) == (evaluated["tiny"].n, evaluated["tiny"].top1, evaluated["tiny"].top5)


def test_the_table_has_timms_columns_first_in_per_cent(evaluated):
    result = evaluated["tiny"]
    row = next(row for row in rows_of(evaluated.path) if row["model"] == "tiny")
    assert list(row)[: len(TIMM)] == TIMM
    assert float(row["top1"]) == pytest.approx(100 * result.top1.value, abs=1e-4)
    assert float(row["top1"]) + float(row["top1_err"]) == pytest.approx(100)
    assert float(row["top5_low"]) == pytest.approx(100 * result.top5.low, abs=1e-4)
    assert (row["img_size"], row["crop_pct"], row["interpolation"]) == ("32", "0.97", "bilinear")
    assert (row["provider"], row["nodes_elsewhere"]) == ("CPUExecutionProvider", "0")


def test_two_models_are_compared_row_by_row(evaluated):
    assert {row["model"]: row["tied"] for row in rows_of(evaluated.path)} == {"tiny": "True", "model": "True"}
    first, second = evaluated.standings()
    correct = evaluated.correct()
    table = np.zeros((2, 2))
    np.add.at(table, tuple(1 - correct[name].astype(int) for name in (first.name, second.name)), 1)
    assert second.behind_best.p == pytest.approx(mcnemar(table, exact=True).pvalue)


def test_the_result_holds_everything(evaluated, tiny_bundle):
    result = evaluated["tiny"]
    assert result.setup.preprocessing_sha256 == tiny_bundle.preprocessing.digest
    assert result.setup.parameters == tiny_bundle.manifest.parameters
    assert result.setup.nodes["CPUExecutionProvider"] > 10
    assert result.speed.images_per_second >= result.speed.images_per_second_overall > 0
    assert 0 < result.speed.latency.p50 <= result.speed.latency.p90 <= result.speed.latency.p99
    assert result.speed.decoded_per_second > 0
    assert result.labels == list(tiny_bundle.class_names)
    assert load_results(evaluated.path).data.class_names == sorted(tiny_bundle.class_names)


def test_predictions_are_in_the_order_of_the_data(evaluated):
    result, predictions, saved = evaluated["tiny"], evaluated.predictions("tiny"), logits_of(evaluated, "tiny")
    assert predictions.ids == saved["ids"].tolist() == sorted(saved["ids"].tolist())
    assert [result.labels[label] for label in predictions.scores.labels] == [
        one.split("/")[0] for one in predictions.ids
    ]
    assert summarize(predictions.scores).top[1] == result.top1
    probabilities = torch.from_numpy(saved["logits"]).softmax(1).max(1).values.numpy()
    np.testing.assert_allclose(predictions.scores.confidences, probabilities, atol=1e-6)
    with Image.open(Path(evaluated.data.name, predictions.ids[3])) as expected:
        assert evaluated.image(predictions.ids[3]).tobytes() == expected.convert("RGB").tobytes()


def test_the_hub_reads_the_model_index(evaluated):
    result = evaluated["tiny"]
    name, found = model_index_to_eval_results(result.to_model_index())
    assert name == "tiny"
    assert {one.metric_type: one.metric_value for one in found} == {
        "accuracy": result.top1.value,
        "top-3-accuracy": result.summary.top[3].value,
        "top-5-accuracy": result.top5.value,
    }
    assert {one.dataset_revision for one in found} == {evaluated.data.fingerprint}


def test_what_was_measured_is_not_measured_again(tiny_bundle, images, evaluated, monkeypatch):
    monkeypatch.setattr(one_classifier, "measure", pytest.fail)
    again = evaluate_classifiers(
        tiny_bundle, data=images, out=evaluated.path, batch_size=8, k=(1, 3, 5), save_logits=True
    )
    assert again["tiny"].setup == evaluated["tiny"].setup
    assert len(rows_of(evaluated.path)) == 2


def test_results_are_written_without_being_asked(tiny_bundle, images):
    results = evaluate_classifiers(tiny_bundle, data=images)
    assert results.path == Path("results", "-".join(images.parts[-2:]))
    files = {str(path.relative_to(results.path)) for path in results.path.rglob("*") if path.is_file()}
    key = results[0].key
    kept = {"results.csv", "data.json", f"models/{key}/result.json", f"models/{key}/predictions.parquet"}
    assert files - {".lock"} == kept


def test_the_training_source_is_scored_on_its_held_out_part(tiny_run, tiny_bundle):
    results = evaluate_classifiers(tiny_bundle, data=tiny_run.record.features.source.source)
    result = results[0]
    assert result.n == 12
    card = tiny_bundle.manifest.accuracy["model.onnx"]
    assert (result.top1.value, result.top5.value) == (card.top1.value, card.top5.value)
    assert results.image(results.predictions(0).ids[0]).size == (40, 40)


def test_a_head_alone_is_scored_on_a_feature_set(tiny_run, tiny_bundle, tmp_path):
    bundle = export_classifier(tiny_run, out=tmp_path / "head", head_only=True)
    features = tiny_run.record.features.path
    results = evaluate_classifiers([bundle.path, tiny_bundle.path], data=features, out=tmp_path / "out")
    result, test = results["head"], tiny_run.record.results.test
    assert (result.n, result.top1.value, result.top5.value) == (12, test.top1, test.top5)
    assert (result.setup.image_size, result.speed.decoded_per_second) == (None, None)
    assert "is a feature set, which only heads" in results.failed[0].error


def test_a_subset_of_the_classes_has_figures_of_its_own(tiny_bundle, images, evaluated, tmp_path):
    """ImageNet-A and -R have 200 of the 1000 classes: accuracy among all and among those are two figures."""
    data = tmp_path / "two"
    for name in ("cat", "hen"):
        shutil.copytree(images / name, data / name)
    result = evaluate_classifiers(tiny_bundle, data=data, out=tmp_path / "out", save_logits=True)[0]
    saved = np.load(tmp_path / "out" / "models" / result.key / "logits.npz")
    assert result.labels == ["cat", "hen", "dog", "emu", "fox", "gnu"]
    assert result.top1.value == (saved["logits"].argmax(1) == saved["labels"]).mean()
    assert result.subset.top[1].value == (saved["logits"][:, :2].argmax(1) == saved["labels"]).mean()
    assert result.subset.top[1].value >= result.top1.value
    (row,) = rows_of(tmp_path / "out")
    assert float(row["top1_of_2"]) == pytest.approx(100 * result.subset.top[1].value, abs=1e-3)


def test_fewer_classes_than_5(image_folder, tiny_backbone, tmp_path):
    data = image_folder(dict.fromkeys(("x", "y", "z"), 12))
    features = extract(data, out=tmp_path / "features", **tiny_backbone._asdict())
    run = train(features, out=tmp_path / "run", epochs=5, device="cpu")
    bundle = export_classifier(run, out=tmp_path / "bundle", head_only=True)
    results = evaluate_classifiers(bundle, data=tmp_path / "features", out=tmp_path / "out")
    assert results[0].top5 is None
    assert rows_of(tmp_path / "out")[0]["top5"] == ""
    assert results.predictions(0).scores.topk_indices.shape[1] == 3
    assert "not applicable" in (tmp_path / "bundle" / "README.md").read_text()


def test_a_file_of_another_order_is_scored_by_name(tiny_bundle, images, evaluated, tmp_path):
    """The data's classes in another order than the labels': same folder names, same answers."""
    data = tmp_path / "split"
    shutil.copytree(images, data / "test", ignore=shutil.ignore_patterns("cat"))
    shutil.copytree(images, data / "train")
    results = evaluate_classifiers(Bundle.load(tiny_bundle.path), data=data, out=tmp_path / "out")
    answers = [
        {
            one.removeprefix("test/"): part["tiny"].labels[best]
            for one, best in zip(found.ids, found.scores.topk_indices[:, 0], strict=True)
        }
        for part in (results, evaluated)
        for found in [part.predictions("tiny")]
    ]
    assert answers[0].items() <= answers[1].items()
    assert results[0].n == 35


def test_the_same_classifier_under_torch(tiny_bundle, images, tmp_path):
    result = evaluate_classifiers(tiny_bundle, data=images, out=tmp_path, against="torch")[0]
    assert result.against.runtime.startswith("torch")
    assert (result.against.equal, result.against.different, result.against.flipped) == (42, 0, [])
    assert result.against.difference.difference == 0
    assert result.against.max_abs_difference < 1e-3
    head = tiny_bundle.path / "model.ts"
    with pytest.raises(InputError, match=r"against torch: .*model\.ts has no file for torch"):
        evaluate_classifiers(head, data=images, out=tmp_path, against="torch")


def test_speed_at_many_batch_sizes(tiny_bundle, image_folder, monkeypatch, tmp_path):
    monkeypatch.setattr(evaluation, "THOROUGH", Effort(0.01, 5, (1, 2, 128)))
    results = evaluate_classifiers(tiny_bundle, data=image_folder({"cat": 3}), out=tmp_path, speed=True)
    assert list(results[0].speed.throughput) == [1, 2, 128]
    assert float(rows_of(tmp_path)[0]["images_per_second_at_128"]) > 0
    json.loads((tmp_path / "models" / results[0].key / "result.json").read_text())


def test_top_1_is_measured_whatever_k_is_asked_for(tiny_bundle, images, tmp_path):
    (result,) = evaluate_classifiers(tiny_bundle, data=images, out=tmp_path / "results", k=[6, 2])
    assert list(result.summary.top) == [1, 2, 6]
    assert result.top1 is not None
