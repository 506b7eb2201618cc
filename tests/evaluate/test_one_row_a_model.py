"""A classifier has one row, wherever and however often it is measured, and its order of outputs does not matter."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import headsmith.evaluate.evaluation as evaluation
import headsmith.evaluate.measuring.one_classifier as one_classifier
import headsmith.evaluate.measuring.one_pass as measurement
from headsmith.cli import app
from headsmith.core.errors import InputError
from headsmith.evaluate import evaluate_classifiers, load_results
from headsmith.evaluate.measuring.timing_in_turns import Effort


@pytest.fixture
def images(image_folder, tiny_bundle):
    return image_folder(dict.fromkeys(tiny_bundle.class_names[:3], 3))


@pytest.fixture
def passes(monkeypatch):
    """The sizes of the batches of all passes over held-out inputs."""
    measure, sizes = one_classifier.measure, []
    monkeypatch.setattr(
        one_classifier, "measure", lambda *args, **more: (sizes.append(args[2].batch_size), measure(*args, **more))[1]
    )
    return sizes


def row_of(results):
    with (results.path / "results.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    return row


def test_a_model_is_timed_again_but_not_answered_again(tiny_bundle, images, passes, monkeypatch, tmp_path):
    monkeypatch.setattr(evaluation, "THOROUGH", Effort(0.01, 5, (1, 2)))
    first = evaluate_classifiers(tiny_bundle, data=images, out=tmp_path)[0]
    assert not first.speed.thorough
    for _ in range(2):
        results = evaluate_classifiers(tiny_bundle, data=images, out=tmp_path, speed=True)
        assert (results[0].speed.thorough, list(results[0].speed.throughput)) == (True, [1, 2])
    cheap = evaluate_classifiers(tiny_bundle, data=images, out=tmp_path)
    assert cheap[0].speed == results[0].speed
    assert (row_of(cheap)["model"], row_of(cheap)["rank"]) == (tiny_bundle.path.name, "1")
    assert passes == [64]


@pytest.mark.parametrize("change", ["machine", "versions", "batch_size", "threads", "k"])
def test_under_other_conditions_a_model_is_measured_again_in_its_place(
    tiny_bundle, images, passes, monkeypatch, tmp_path, change
):
    first = evaluate_classifiers(tiny_bundle, data=images, out=tmp_path, threads=1)[0]
    asked = {"threads": 1} | {"batch_size": {"batch_size": 2}, "threads": {"threads": 2}, "k": {"k": (1, 2)}}.get(
        change, {}
    )
    if change == "machine":
        monkeypatch.setattr(one_classifier, "cpu_name", lambda: "another CPU")
    if change == "versions":
        monkeypatch.setattr(one_classifier, "versions", lambda: {"onnxruntime": "99.0"})
    results = evaluate_classifiers(tiny_bundle, data=images, out=tmp_path, **asked)
    assert len(passes) == 2
    assert (len(results), results[0].key) == (1, first.key)
    assert (results[0].conditions != first.conditions) == (change != "k")
    assert row_of(results)["model"] == tiny_bundle.path.name


@pytest.fixture
def level(monkeypatch):
    """All scores of every classifier are equal."""
    timed = measurement._timed

    def made(model, inputs):
        outputs, seconds = timed(model, inputs)
        outputs.logits[:] = 0
        return outputs, seconds

    monkeypatch.setattr(measurement, "_timed", made)


@pytest.mark.usefixtures("level")
def test_a_result_that_says_nothing_is_written_and_has_a_status_of_its_own(tiny_bundle, images, tmp_path):
    command = ["evaluate", str(tiny_bundle.path), "--data", str(images), "--out", str(tmp_path / "out")]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 4, shown.output
    assert "warning (chance): tiny: top-1, 33.3%, cannot be told from guessing" in " ".join(shown.output.split())
    assert load_results(tmp_path / "out")[0].worthless


def test_results_of_an_older_version_are_refused_before_anything_runs(tiny_bundle, images, passes, tmp_path):
    result = evaluate_classifiers(tiny_bundle, data=images, out=tmp_path)[0]
    path = tmp_path / "models" / result.key / "result.json"
    written = json.loads(path.read_text())
    written["speed"]["rss_bytes"] = 1_014_000_000
    path.write_text(json.dumps(written))
    with pytest.raises(InputError, match=r"speed\.rss_bytes: .* evaluate again into another folder"):
        evaluate_classifiers(tiny_bundle, data=images, out=tmp_path, k=(1,))
    assert passes == [64]


@pytest.mark.usefixtures("level")
def test_equal_scores_go_by_the_order_of_the_data(tiny_bundle, image_folder, tmp_path):
    """The held-out classes are the last ones of the file, so that its outputs stand in another order."""
    names = tiny_bundle.class_names
    results = evaluate_classifiers(tiny_bundle, data=image_folder(dict.fromkeys(names[-2:], 4)), out=tmp_path)
    scores = results.predictions(0).scores
    assert results[0].labels == [*names[-2:], *names[:-2]]
    assert set(map(tuple, scores.topk_indices)) == {(0, 1, 2, 3, 4)}
    assert scores.ranks.tolist() == scores.labels.tolist() == [0] * 4 + [1] * 4
    assert results[0].worthless


def test_images_without_a_right_class_count_for_speed(tiny_bundle, images, monkeypatch, tmp_path):
    """ReaL leaves some images without a label. They are run, and their seconds count."""
    timed = measurement._timed
    monkeypatch.setattr(measurement, "_timed", lambda *given: (timed(*given)[0], 0.25))
    truth = tmp_path / "real.json"
    files = sorted(path.relative_to(images) for path in images.rglob("*.png"))
    truth.write_text(json.dumps([[0] if number % 3 else [] for number in range(len(files))]))
    flat = tmp_path / "flat"
    flat.mkdir()
    for number, name in enumerate(files):
        (flat / f"{number:03}.png").write_bytes((images / name).read_bytes())
    ids = tmp_path / "ids.txt"
    ids.write_text("".join(f"{number} {name}\n" for number, name in enumerate(tiny_bundle.class_names)))
    asked = {"truth": truth, "class_ids": ids, "batch_size": 3, "out": tmp_path / "out"}
    result = evaluate_classifiers(tiny_bundle, data=flat, **asked)[0]
    assert (len(files), result.n) == (9, 6)
    assert result.speed.images_per_second == pytest.approx(9 / (3 * 0.25))
    assert np.isfinite(result.speed.images_per_second_overall)
