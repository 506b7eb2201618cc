"""Backbones that packages carry, on characters: killed, resumed, one more later, and the same as one by one."""

import os
import signal
from pathlib import Path
from typing import NamedTuple

import onnx
import pytest
import yaml

from headsmith.demo.glyphs import draw_glyphs
from headsmith.evaluate import evaluate_classifiers
from headsmith.evaluate.benchmark import Benchmark, benchmark
from headsmith.evaluate.benchmark.stages import Stages
from headsmith.evaluate.benchmark.trained_rows import read_rows
from headsmith.export import export_classifier
from headsmith.trainer import extract
from headsmith.trainer.sweep import sweep
from tests import forked

# Real structures, but all weights of a tensor are one constant: features tell little more than how dark an image is.
LIGHT = ("light_squeezenet", "light_shufflenet")
LITE, VIT, MORE = "lite0", "test_vit2", "test_efficientnet"
KILLED = "test_resnet"


class Glyphs(NamedTuple):
    """What each of three calls left."""

    images: Path
    folder: Path
    killed: dict[str, int]
    resumed: Benchmark
    begun: list[str]
    more: Benchmark
    further: list[str]


def settings(zoo, name):
    """How `extract` gets a backbone, from the folder of the weights."""
    if name in LIGHT:
        folder = Path(onnx.__file__).parent / "backend/test/data/light"
        return {"backbone": f"onnx:{folder / name}.onnx", "preprocessing": "light.yaml"}
    return {"backbone": name, "image_size": 64} if name == LITE else zoo.local(name) | {"image_size": 32}


def interrupted(images, config, out):
    export = Stages.export

    def killed(self, *given):
        if self.unit.base == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        return export(self, *given)

    Stages.export = killed
    benchmark(images, config=config, out=out, jobs=1)


@pytest.fixture(scope="session")
def glyphs(zoo, shortened, tmp_path_factory):
    folder = tmp_path_factory.mktemp("glyphs")
    images, out = draw_glyphs(folder / "images", 5), folder / "out"
    recipe = yaml.safe_load((zoo.folder / "recipe.yaml").read_text())
    (zoo.folder / "light.yaml").write_text(yaml.safe_dump(recipe | {"resize_size": 224, "crop_size": 224}))
    rows = [settings(zoo, name) | {"name": name} for name in (LITE, LIGHT[0], KILLED, LIGHT[1], VIT)]
    config = zoo.config("glyphs", backbones=[*rows, zoo.lost()], sweep="grid.yaml", device="cpu", keep="all")
    more = zoo.config(
        "more", backbones=[*rows, zoo.lost(), settings(zoo, MORE)], sweep="grid.yaml", device="cpu", keep="all"
    )
    with pytest.MonkeyPatch.context() as patch:
        shortened(patch)
        process = forked.start(interrupted, images, config, out, printed=folder / "printed")
        process.join(forked.PATIENCE)
        assert process.exitcode == -signal.SIGKILL, (folder / "printed").read_text(encoding="utf-8")
        killed = {row.name: (out / "rows" / f"{row.name}.json").stat().st_mtime_ns for row in read_rows(out)}
        begun, rows_of = [], Stages.rows
        patch.setattr(Stages, "rows", lambda self, keys: begun.append(self.unit.base) or rows_of(self, keys))
        resumed = benchmark(images, config=config, out=out)
        first = list(begun)
        begun.clear()
        return Glyphs(images, out, killed, resumed, first, benchmark(images, config=more, out=out), begun)


def heads(found):
    return {row.name.removesuffix("-grid"): row for row in found.rows if row.kind == "head"}


def test_all_rows_are_there_after_a_kill(glyphs):
    rows = heads(glyphs.resumed)
    assert rows.keys() == {LITE, *LIGHT, KILLED, VIT, "lost"}
    assert glyphs.killed.keys() == {f"{name}-grid" for name in (LITE, LIGHT[0])}
    assert glyphs.begun == [KILLED, LIGHT[1], VIT, "lost"]
    for name, written in glyphs.killed.items():
        assert (glyphs.folder / "rows" / f"{name}.json").stat().st_mtime_ns == written
    (failed,) = glyphs.resumed.failed
    assert failed == rows["lost"] and "does not fit the backbone" in failed.reason
    assert all(row.top1.n == rows[LITE].top1.n > 0 for row in rows.values() if row is not failed)
    best = max(row.val_top1.value for row in rows.values() if row is not failed)
    assert glyphs.resumed.winner.val_top1.value == best > 1 / 5


def test_one_more_backbone_is_done_alone(glyphs):
    before, after = heads(glyphs.resumed), heads(glyphs.more)
    assert glyphs.further == ["lost", MORE]  # what failed is tried again
    assert after.keys() == before.keys() | {MORE}
    assert after[MORE].top1 is not None
    for name, row in before.items():
        assert (after[name].top1, after[name].val_top1, after[name].latency) == (row.top1, row.val_top1, row.latency)


@pytest.mark.parametrize("name", [LITE, LIGHT[0]])
def test_the_accuracies_are_those_of_the_commands_one_by_one(glyphs, zoo, tmp_path, monkeypatch, name):
    monkeypatch.chdir(zoo.folder)
    said = {key: value for key, value in settings(zoo, name).items() if key != "name"}
    dtype = "float32" if name in LIGHT else "float16"  # as the message of an extraction as float16 asks for
    features = extract(glyphs.images, out=tmp_path / "features", device="cpu", dtype=dtype, **said)
    found = sweep(features, config="grid.yaml", out=tmp_path / "sweep", device="cpu")
    bundle = export_classifier(found.best, out=tmp_path / "bundle")
    (result,) = evaluate_classifiers(bundle, data=glyphs.images, out=tmp_path / "results")
    row = heads(glyphs.more)[name]
    assert (row.top1, row.top5) == (result.top1, result.top5)
    assert row.val_top1.value == found.record.winner.val.top1
    assert (row.loss, row.feature_dim) == (found.record.winner.config.loss, features.feature_dim)
