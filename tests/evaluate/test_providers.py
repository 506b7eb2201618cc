"""Several execution providers in one evaluation: names, keys, warm-up, and the difference to the CPU."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest
import yaml
from evaluated_tables import rows_of
from example_results import DATA, made_up

from headsmith.core.errors import InputError
from headsmith.core.files import sha256_json
from headsmith.evaluate import evaluate_classifiers, load_results
from headsmith.evaluate.benchmark.plan import read_config
from headsmith.evaluate.held_out_record import HeldOutSource
from headsmith.evaluate.measuring.cpu_difference import moved
from headsmith.evaluate.measuring.one_pass import measure
from headsmith.evaluate.measuring.published import CpuDifference, compare
from headsmith.evaluate.open_held_out import open_data
from headsmith.evaluate.options import EvaluationOptions
from headsmith.evaluate.result import FailedModel
from headsmith.evaluate.results import ResultsFolder
from headsmith.export import open_model
from headsmith.models.execution_provider import CPU, ExecutionProvider, provider_of

OTHER = ExecutionProvider("other", "OtherExecutionProvider")


def test_the_difference_to_the_cpu():
    expected = np.array([[1, 2, -4], [0, 8, 1], [3, 3, 0], [1, 0, 0], [5, 0, 0]], np.float32)
    found = np.array([[1, 2, -4], [0, 7.5, 1], [3, 2, 0], [0.5, 0.75, 0], [np.nan, 0, 0]], np.float32)
    assert compare(expected, found) == CpuDifference(n=5, flips=2, ties=0, largest=1.0, share=1 / 8, not_finite=1)
    assert compare(expected, expected[:, [0, 1, 2]]) == CpuDifference(5, 0, 0, 0.0, 0.0, 0)
    assert compare(expected[2:3], np.array([[2.5, 3, 0]], np.float32)).ties == 1


@pytest.mark.parametrize(
    ("share", "not_finite", "precision", "warned"),
    [(2e-3, 0, "fp32", True), (5e-4, 0, "fp32", False), (0.0, 1, "fp32", True), (2e-3, 0, "int8", False)],
)
def test_float32_that_is_moved_by_more_than_tf32_moves_it_is_warned_of(share, not_finite, precision, warned):
    model = SimpleNamespace(provider=OTHER, metadata=SimpleNamespace(precision=precision))
    found = moved(CpuDifference(9, 1, 0, 0.5, share, not_finite), model)
    assert [one.code for one in found] == ["other-than-cpu"] * warned
    assert moved(None, model) == []


def test_a_size_of_batch_that_was_not_met_is_run_once_before_the_clock(tiny_bundle, images, monkeypatch):
    """42 inputs in batches of 8: the last has 2."""
    model = open_model(tiny_bundle.path / "model.onnx")
    answer, sizes = model.answer, Counter()

    def counted(fed):
        sizes[len(fed)] += 1
        return answer(fed)

    monkeypatch.setattr(model, "answer", counted)
    held_out = open_data(HeldOutSource(str(images), None, None, None, None, None)).for_classifier(model.metadata)
    runs = {}
    for provider in (CPU, OTHER):
        model.provider = provider
        sizes.clear()
        measure(model, held_out, EvaluationOptions(images, batch_size=8))
        runs[provider.name] = dict(sizes)
    assert runs["other"] == runs["cpu"] | {2: runs["cpu"][2] + 1}
    assert runs["cpu"][8] == 5 + 1


def test_a_key_is_what_it_was_before_there_were_options(tiny_bundle, images, tmp_path):
    result = evaluate_classifiers(tiny_bundle, data=images, out=tmp_path)[0]
    about = [result.model, result.setup.model_sha256, result.setup.data_sha256, "cpu", False, False]
    assert result.key == sha256_json(about)[:32]
    assert result.beside_cpu is None


def test_names_tell_providers_apart(tmp_path):
    folder = ResultsFolder(tmp_path, DATA)
    folder.add(*made_up("net", 1))
    assert folder.name_for("net", "net-1", "cpu") == "net"
    assert folder.name_for("net", "f" * 32, "openvino") == "net (openvino)"
    folder.add(*made_up("net (openvino)", 2))
    assert folder.name_for("net", "e" * 32, "openvino") == "net@eeeeee"
    folder.fail([FailedModel("net (cuda)", "net.onnx", "no", "d" * 32)])
    assert {row["model"] for row in rows_of(tmp_path)} == {"net", "net (openvino)", "net (cuda)"}


def test_the_difference_stands_in_file_and_table(tmp_path):
    folder = ResultsFolder(tmp_path, DATA)
    result, predictions = made_up("net", 1)
    found = CpuDifference(n=60, flips=3, ties=1, largest=0.0123456789, share=0.25, not_finite=0)
    folder.add(replace(result, beside_cpu=found), predictions)
    assert load_results(tmp_path)["net"].beside_cpu == found
    (row,) = rows_of(tmp_path)
    assert (row["cpu_difference"], row["cpu_flips"], row["cpu_compared"]) == ("0.0123457", "3", "60")


def test_files_for_torch_take_no_other_provider(tiny_bundle, monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", onnxruntime.get_all_providers)
    with pytest.raises(InputError, match="^provider openvino: runs ONNX files alone; files for torch take cpu"):
        open_model(tiny_bundle.path / "model.ts", provider="openvino")
    with pytest.raises(InputError, match="^provider cuda: runs ONNX files"):
        open_model(tiny_bundle.path / "model.ts", provider=provider_of({"provider": "cuda", "options": {"a": 1}}))


def test_a_benchmark_takes_options_in_its_file(tmp_path):
    (tmp_path / "twin.yaml").write_text("provider: cpu")
    path = tmp_path / "benchmark.yaml"
    asked = ["cpu", "twin.yaml", {"provider": "cpu", "name": "third"}]
    path.write_text(yaml.safe_dump({"backbones": ["lite0"], "provider": asked}))
    providers = read_config(path)[1]["provider"]
    assert [(one.name, one.kind) for one in providers] == [(name, CPU.kind) for name in ("cpu", "twin", "third")]
    for wrong, said in (
        ({"provider": "cpu", "opt": 1}, "benchmark.yaml: provider: opt: is not known"),
        ("tpu", "benchmark.yaml: provider tpu: not known"),
        ([7], "benchmark.yaml: provider: 7 found"),
        ("none.yaml", "none.yaml: "),
    ):
        path.write_text(yaml.safe_dump({"backbones": ["lite0"], "provider": wrong}))
        with pytest.raises(InputError, match=said):
            read_config(path)
