"""ONNX files of others in `--also`, which say nothing of themselves."""

import re
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from headsmith.evaluate.benchmark.benchmarking import _others
from headsmith.evaluate.benchmark.options import BenchmarkOptions
from headsmith.evaluate.zoo import Candidate, Failed, find_candidates

RECIPE = {
    "resize_mode": "shortest",
    "resize_size": 224,
    "crop_size": 224,
    "interpolation": "bilinear",
    "channel_order": "rgb",
    "scale": 1,
    "mean": 0,
    "std": 1,
}
DOCS = Path(__file__).parents[3] / "docs"
NET = """<ir_version: 8, opset_import: ["" : 13]> net (float[N, 3, 224, 224] images) => (float[N, 3] scores) {
    means = GlobalAveragePool(images)
    scores = Flatten(means)
}"""


@pytest.fixture
def net(tmp_path):
    (tmp_path / "zoo").mkdir()
    onnx.save_model(onnx.parser.parse_model(NET), tmp_path / "zoo" / "net.onnx")
    (tmp_path / "zoo" / "names.txt").write_text("cat\ndog\nemu\n")
    return tmp_path / "zoo" / "net.onnx"


def found(path):
    (one,) = find_candidates(_others(BenchmarkOptions(also=(str(path),))))
    return one


def test_a_file_without_a_recipe_is_told_to_stand_in_a_zoo(net):
    one = found(net)
    assert isinstance(one, Failed)
    assert one.error.endswith(
        "write its recipe into a YAML file and name it with preprocessing: in its row of a zoo.yaml, given as `also` "
        "zoo.yaml"
    )


def test_a_file_without_labels_is_told_the_same(net):
    (row,) = _others(BenchmarkOptions(also=(str(net),)))
    (one,) = find_candidates([replace(row, preprocessing=RECIPE)])
    assert isinstance(one, Failed)
    assert one.error.endswith("with labels: in its row of a zoo.yaml, given as `also` zoo.yaml")


def test_the_example_of_such_a_zoo_works(net):
    text = (DOCS / "benchmark.md").read_text(encoding="utf-8")
    (example,) = (one for one in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if one.startswith("# zoo.yaml"))
    zoo = net.parents[1] / "zoo.yaml"
    zoo.write_text(example, encoding="utf-8")
    one = found(zoo)
    assert isinstance(one, Candidate), one
    assert (one.preprocessing.crop_size, one.preprocessing.mean) == ((224, 224), (123.675, 116.28, 103.53))
