"""Files of others, and lower precisions, are further rows."""

import csv
import re
import shutil

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from headsmith import write_report
from headsmith.cli import app
from headsmith.evaluate.benchmark import benchmark, stages
from headsmith.evaluate.benchmark.stages import Stages
from headsmith.export import Bundle
from headsmith.export.errors import GateError


@pytest.fixture
def again(five, zoo, tmp_path, monkeypatch):
    """A copy of the finished benchmark, in which nothing is trained again."""
    folder = shutil.copytree(five.path, tmp_path / "five")
    rows = [row for row in zoo.rows() if row["name"] != "lost"]

    def refuse(self, keys):
        raise AssertionError(f"{self.unit.name} was begun")

    def run(**values):
        config = zoo.config("again", backbones=rows, sweep="grid.yaml", device="cpu", keep="all", **values)
        with monkeypatch.context() as patch:
            patch.setattr(Stages, "rows", refuse)
            return benchmark(zoo.images, config=config, out=folder)

    return run


def always_the_first_class(source, path):
    """A copy of a classifier's file whose head answers the first class whatever it sees."""
    model = onnx.load(source)
    (bias,) = (one for one in model.graph.initializer if list(one.dims) == [3])
    bias.CopyFrom(onnx.numpy_helper.from_array(np.array([1e6, 0, 0], np.float32), bias.name))
    onnx.save_model(model, path)


def test_files_of_others_are_paired_with_the_winner_and_their_flips_listed(five, zoo, again):
    old = zoo.folder / "old"
    shutil.copytree(five.path / "bundles" / "other-grid", old / "other-grid")  # a name that a row has too
    always_the_first_class(five.path / "bundles" / "quiet-grid" / "model.onnx", old / "first.onnx")
    (old / "lost.onnx").write_text("no graph")
    found = again(also=["old/other-grid", "old/first.onnx", "old/lost.onnx"])  # from the folder of the file
    also = {row.name: row for row in found.rows if row.kind == "also"}
    assert sorted(also) == ["first", "lost", "other-grid (also)"]
    assert (also["lost"].state, also["lost"].top1) == ("failed", None)
    assert "lost.onnx" in also["lost"].reason
    twin, own = also["other-grid (also)"], found["other-grid"]
    assert (twin.top1, twin.p, twin.difference) == (own.top1, own.p, own.difference)
    first = also["first"]
    assert first.top1.value == pytest.approx(1 / 3)
    assert first.difference == pytest.approx(1 / 3 - found.winner.top1.value)
    with (found.path / "flips" / "first.csv").open(encoding="utf-8") as file:
        flips = list(csv.DictReader(file))
    assert {row["second"] for row in flips} == {"cat"}
    assert len(flips) == sum(row["first"] != "cat" for row in flips) > 0
    both = found["majority class"]
    assert (first.top1, first.difference) == (both.top1, both.difference)  # it says the same
    assert found.winner.kind == "head"
    assert {row.name: row.within for row in also.values()} == {"first": True, "lost": None, "other-grid (also)": True}
    bounded = again(also=["old/first.onnx"], size="1kB")
    assert (bounded["first"].within, bounded[found.winner.name].within) == (False, False)
    page = write_report(bounded.path, out=zoo.folder / "page.html").read_text(encoding="utf-8")
    assert f"<title>None of 5 is within --size 0.001 MB; nearest: {bounded.winner.name}</title>" in page
    assert "Deploy" not in page
    again()
    assert not (found.path / "flips").exists()


def test_each_precision_is_a_row_and_a_refused_gate_says_why(zoo, tmp_path):
    config = zoo.config(
        "lower", backbones=[zoo.onnx("loud", scale=1e7)], sweep="grid.yaml", device="cpu", precision=["fp32", "fp16"]
    )
    found = benchmark(zoo.images, config=config, out=tmp_path / "out", max_drop=17)
    rows = {row.precision: row for row in found.rows if row.kind == "head"}
    assert rows.keys() == {"fp32", "fp16"}
    assert rows["fp32"].top1 is not None
    assert rows["fp16"].state == "failed"  # float16 ends at 65,504
    assert rows["fp16"].reason.startswith("export: fp16: ")
    assert rows["fp16"].reason.endswith("(float16 ends at 65504); leave `precision` fp16 out")  # the network is beyond
    quiet = zoo.config("quiet", backbones=[zoo.onnx("quiet")], sweep="grid.yaml", device="cpu", precision=["int8"])
    lower = benchmark(zoo.images, config=quiet, out=tmp_path / "out", max_drop=17)["quiet-grid-int8"]
    assert (lower.state, lower.val_top1.n, lower.top1.n) == ("done", 6, 6)
    assert (tmp_path / "out" / lower.bundle / "model.onnx").is_file()


def test_a_head_beyond_float16_is_told_with_a_command_that_keeps_it_in_float32(zoo, tmp_path, monkeypatch):
    original = stages.exported

    def exported(run, path, precision, *given):
        if precision == "fp16":
            raise GateError("fp16: 1 tensors", advice="keep the head in float32 with --fp32-head", head_alone=True)
        return original(run, path, precision, *given)

    monkeypatch.setattr(stages, "exported", exported)
    config = zoo.config("head", backbones=[zoo.onnx("quiet")], sweep="grid.yaml", precision=["fp32", "fp16"])
    found = benchmark(zoo.images, config=config, out=tmp_path / "out", device="cpu", max_drop=17)
    command = re.search("`headsmith (.*?)`", found["quiet-grid-fp16"].reason)[1]
    shown = CliRunner().invoke(app, [*command.replace("BUNDLE", str(tmp_path / "half")).split(), "--max-drop", "17"])
    assert shown.exit_code == 0, shown.output
    assert Bundle.load(tmp_path / "half").manifest.precision.precision == "fp16"
