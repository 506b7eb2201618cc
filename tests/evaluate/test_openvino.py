"""OpenVINO's execution provider, from its own onnxruntime in a process of its own."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from headsmith.models.images import open_image

OPENVINO = Path(sys.prefix) / "openvino"
PROCESS = Path(__file__).with_name("openvino_process.py")
DET = """(float[N,3,8,8] images) => (float[N,6] scores) {
    volumes = Det(images)
    scores = MatMul(volumes, weights)
}"""
POOL = """(float[N,3,8,8] images) => (float[N,6] scores) {
    norms = GlobalLpPool<p = 2>(images)
    features = Flatten(norms)
    scores = MatMul(features, weights)
}"""
NET = """(float[N,3,8,8] images) => (float[N,5] scores) {
    maps = Conv<strides = [2, 2]>(images, filters)
    bent = Relu(maps)
    means = GlobalAveragePool(bent)
    features = Flatten(means)
    scores = MatMul(features, weights)
}"""


@pytest.fixture(scope="module")
def made(need, tiny_bundle, images, onnx_file, recipe_file, tmp_path_factory):
    """What `openvino_process` made, and its folder."""
    need((OPENVINO / "onnxruntime").is_dir(), "onnxruntime-openvino")
    folder = tmp_path_factory.mktemp("openvino")
    shutil.copytree(tiny_bundle.path, folder / "bundle")
    shutil.copytree(images, folder / "images")
    shutil.copy(onnx_file(DET, weights=(3, 6)), folder / "det.onnx")
    shutil.copy(onnx_file(POOL, weights=(3, 6)), folder / "pool.onnx")
    shutil.copy(recipe_file(), folder / "recipe.yaml")
    (folder / "labels.txt").write_text("\n".join(tiny_bundle.class_names))
    bf16 = {"provider": "openvino", "options": {"load_config": {"CPU": {"INFERENCE_PRECISION_HINT": "bf16"}}}}
    (folder / "bf16.yaml").write_text(yaml.safe_dump(bf16))
    (folder / "grid.yaml").write_text("loss: softmax\nlearning_rate: [0.1]\nepochs: 2\n")
    net = {"backbone": "onnx:net.onnx", "preprocessing": "recipe.yaml", "name": "net"}
    shutil.copy(onnx_file(NET, filters=(8, 3, 2, 2), weights=(8, 5)), folder / "net.onnx")
    asked = ["cpu", "openvino", {"name": "half", **bf16}]
    settings = {"backbones": [net], "sweep": "grid.yaml", "device": "cpu", "provider": asked, "threads": 1}
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(settings))
    files = sorted((folder / "images").glob("*/*.png"))
    pixels = np.stack([tiny_bundle.preprocessing(open_image(file, str(file))) for file in files])
    np.save(folder / "pixels.npy", np.ascontiguousarray(pixels.transpose(0, 3, 1, 2), dtype=np.float32))
    path = [str(OPENVINO), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
    command = [sys.executable, PROCESS, folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    return folder, json.loads((folder / "answer.json").read_text())


@pytest.fixture(scope="module")
def direct(made):
    """Logits by provider, of onnxruntime called directly."""
    with np.load(made[0] / "direct.npz") as found:
        return dict(found)


def results_of(made):
    return {one["setup"]["provider_name"]: one for one in made[1]["results"]}


def test_the_difference_to_the_cpu_is_that_of_onnxruntime_called_directly(made, direct):
    found = results_of(made)
    assert list(direct) == ["cpu", "openvino", "bf16"] and found.keys() == direct.keys()
    assert "beside_cpu" not in found["cpu"]
    for name in ("openvino", "bf16"):
        apart = np.abs(direct[name].astype(np.float64) - direct["cpu"])
        beside = found[name]["beside_cpu"]
        assert beside["n"] == len(direct["cpu"]) == 42
        assert beside["largest"] == pytest.approx(apart.max(), rel=1e-9, abs=0)
        assert beside["share"] == pytest.approx(apart.max() / np.abs(direct["cpu"]).max(), rel=1e-6, abs=0)
        assert beside["flips"] == (direct[name].argmax(1) != direct["cpu"].argmax(1)).sum()
    assert found["openvino"]["beside_cpu"]["share"] < 1e-5


def test_answers_are_those_of_the_provider_with_its_options(made, direct):
    folder = made[0]
    for name, result in results_of(made).items():
        with np.load(folder / "results" / "models" / result["key"] / "logits.npz") as saved:
            np.testing.assert_array_equal(np.sort(saved["logits"], axis=1), np.sort(direct[name], axis=1))


def test_every_node_runs_there_and_the_options_are_told(made):
    found = results_of(made)
    for name in ("openvino", "bf16"):
        setup = found[name]["setup"]
        assert list(setup["nodes"]) == ["OpenVINOExecutionProvider"] == [setup["provider"]]
        assert setup["runtime"].startswith("onnxruntime-openvino 1.")
        assert setup["provider_options"]["num_of_threads"] == "1"
    assert json.loads(found["bf16"]["setup"]["provider_options"]["load_config"])["CPU"] == {
        "INFERENCE_PRECISION_HINT": "bf16"
    }
    names = {"cpu": "bundle", "openvino": "bundle (openvino)", "bf16": "bundle (bf16)"}
    assert {name: one["model"] for name, one in found.items()} == names


def test_a_node_that_it_does_not_run_is_named_or_counted(made):
    answer = made[1]
    assert "1 nodes (Det) do not run on OpenVINOExecutionProvider" in answer["misplaced"]
    assert answer["allowed"]["nodes"] == {"OpenVINOExecutionProvider": 1, "CPUExecutionProvider": 1}


def test_a_node_that_it_cannot_compile_is_named(made):
    assert made[1]["uncompiled"].startswith("pool.onnx: openvino cannot run it (")
    assert "'<Node(GlobalLpPool): norms>': First dimension" in made[1]["uncompiled"]
    assert "\n" not in made[1]["uncompiled"]


def test_what_cannot_start_is_one_line(made):
    answer = made[1]
    assert answer["bad"] == (
        "provider bad: cannot start here (Invalid OpenVINO EP option: nonsense); correct its options, "
        "or use `provider` cpu"
    )
    assert "provider card: onnxruntime could not start OpenVINOExecutionProvider" in answer["card"]
    assert "GPU.7" in answer["card"]
    assert answer["cuda"].startswith("provider cuda: this onnxruntime-openvino 1.24.1 has openvino, cpu; pip install")


def test_predictions_are_those_of_the_cpu(made):
    found = made[1]["predicted"]
    assert [label for label, _ in found["openvino"]] == [label for label, _ in found["cpu"]]
    for (_, one), (_, two) in zip(found["openvino"], found["cpu"], strict=True):
        assert one == pytest.approx(two, abs=1e-5)


def test_a_benchmark_has_a_column_for_each(made):
    folder, answer = made
    (row,) = (one for one in answer["rows"] if one["kind"] == "head")
    assert list(row["providers"]) == ["openvino", "half"] and row["moved"] is None
    for name, other in row["providers"].items():
        result = next((folder / "table" / "results" / name / "models").glob("*/result.json"))
        assert other["moved"] == json.loads(result.read_text())["beside_cpu"]["largest"]
        assert other["latency"]["p50"] > 0 and other["error"] == ""
    with (folder / "table" / "leaderboard.csv").open() as file:
        cells = next(one for one in csv.DictReader(file) if one["model"] == row["name"])
    assert float(cells["moved@openvino"]) == row["providers"]["openvino"]["moved"]
