"""Every backbone has a row, and its figures are those of the commands one by one."""

import csv
import shutil
from collections import Counter

import pytest

from headsmith.evaluate import evaluate_classifiers
from headsmith.evaluate.benchmark import Benchmark, benchmark
from headsmith.evaluate.benchmark.leaderboard import COLUMNS
from headsmith.evaluate.benchmark.stages import Stages
from headsmith.evaluate.measuring import speed_figures
from headsmith.export import export_classifier
from headsmith.trainer import extract
from headsmith.trainer.features.images.image_set import ImageSet
from headsmith.trainer.sweep import sweep

TRAINED = ("quiet-grid", "loud-grid", "other-grid", "test_resnet-grid", "more-grid")


def heads(found):
    return {row.name: row for row in found.rows if row.kind == "head"}


def test_there_is_a_row_for_every_backbone_and_one_that_fails_says_why(five):
    rows = heads(five)
    assert sorted(rows) == sorted([*TRAINED, "lost-grid"])
    lost = rows.pop("lost-grid")
    assert (lost.state, lost.top1) == ("failed", None)
    assert lost.reason.startswith("extract: checkpoint ") and "does not fit the backbone" in lost.reason
    assert five.failed == [lost]
    for row in rows.values():
        assert row.top1.n == row.val_top1.n == 6, row.reason
        assert row.latency.p50 > 0 and row.images_per_second > 0 and row.file_mb > 0
        assert (five.path / row.bundle / "model.onnx").is_file()
    assert {name: row.image_size for name, row in rows.items()} == {
        name: 32 if name.startswith("test_") else 16 for name in TRAINED
    }
    assert rows["loud-grid"].notes[0] == "features beyond float16 are stored as float32"
    assert not any("float32" in note for note in rows["quiet-grid"].notes)


def test_validation_chooses_and_what_needs_no_training_stands_below(five):
    rows = heads(five)
    best = max(row.val_top1.value for row in rows.values() if row.val_top1)
    assert five.winner.val_top1.value == best and five.winner.tied
    untrained = [row for row in five.rows if row.kind == "baseline"]
    assert [row.name for row in untrained][-1] == "majority class"
    assert untrained[-1].top1.value == pytest.approx(1 / 3)  # three classes of as many images
    assert untrained[0].name.endswith(f"nearest on {five.winner.name}")


def test_a_row_is_what_the_commands_give_one_by_one(five, zoo, tmp_path):
    features = extract(
        zoo.images,
        out=tmp_path / "features",
        backbone=f"onnx:{zoo.folder / 'quiet.onnx'}",
        preprocessing=zoo.folder / "recipe.yaml",
        device="cpu",
    )
    found = sweep(features, config=zoo.folder / "grid.yaml", out=tmp_path / "sweep", device="cpu")
    bundle = export_classifier(found.best, out=tmp_path / "bundle")
    (result,) = evaluate_classifiers(bundle, data=zoo.images, out=tmp_path / "results")
    row = heads(five)["quiet-grid"]
    assert (row.top1, row.top5) == (result.top1, result.top5)
    assert row.val_top1.value == found.record.winner.val.top1
    assert (row.parameters, row.file_mb) == (result.setup.parameters, result.setup.bytes / 1e6)


def test_an_image_is_decoded_once_for_all_that_resize_alike(five, zoo, tmp_path, monkeypatch):
    read, original = Counter(), ImageSet.read

    def counted(self, index, *given):
        read[self.samples[index].id] += 1
        return original(self, index, *given)

    monkeypatch.setattr(ImageSet, "read", counted)
    monkeypatch.setattr(speed_figures, "_decoding", lambda held_out: 1.0)  # which has to decode
    config = zoo.config("alike", backbones=[zoo.onnx("quiet"), zoo.onnx("other", seed=1)], sweep="grid.yaml")
    found = benchmark(
        zoo.images, config=config, out=tmp_path / "out", device="cpu", max_drop=17, precision=["fp32", "int8"]
    )
    assert len(read) == 60 and set(read.values()) == {1}
    assert [heads(found)[name].top1 for name in ("quiet-grid", "other-grid")] == [
        heads(five)[name].top1 for name in ("quiet-grid", "other-grid")
    ]
    assert not (tmp_path / "out" / ".crops").exists()


def test_the_table_has_timms_columns_first_and_reads_back(five):
    with (five.path / "leaderboard.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    frame, again = five.to_pandas(), Benchmark.load(five.path)
    assert list(rows[0]) == list(frame.columns) == list(COLUMNS)
    assert list(rows[0])[:3] == ["model", "img_size", "top1"]
    assert [row["model"] for row in rows] == [row.name for row in five.rows] == list(frame["model"])
    assert again.record == five.record
    text = (five.path / "leaderboard.md").read_text(encoding="utf-8")
    assert f"Deploy {five.winner.name}, best of 5 but level with 4 others on validation" in text
    assert all(f"| {row.name} |" in text for row in five.rows)


def test_an_interruption_keeps_what_is_done_and_one_more_backbone_is_done_alone(zoo, tmp_path, monkeypatch):
    done = []

    def counted(name):
        original = getattr(Stages, name)

        def stage(self, *args):
            done.append((name, self.unit.base))
            if interrupted and name == "export":
                raise KeyboardInterrupt
            return original(self, *args)

        monkeypatch.setattr(Stages, name, stage)

    for name in ("extract", "sweep", "export"):
        counted(name)
    interrupted, out = True, tmp_path / "out"
    first_of_all, further = zoo.onnx("first"), zoo.onnx("further", seed=1)
    one = zoo.config("one", backbones=[first_of_all], sweep="grid.yaml", device="cpu")
    two = zoo.config("two", backbones=[first_of_all, further], sweep="grid.yaml", device="cpu")
    with pytest.raises(KeyboardInterrupt) as stop:
        benchmark(zoo.images, config=one, out=out)
    assert "keeps 0 exported classifiers and what was begun; the same command goes on" in stop.value.__notes__[0]
    interrupted = False
    sweeps = out / "sweeps" / "first-grid" / "sweep.json"
    written = sweeps.stat().st_mtime_ns
    first = benchmark(zoo.images, config=one, out=out)
    assert sweeps.stat().st_mtime_ns == written  # the sweep of the interrupted run, used again
    assert [row.name for row in first.rows if row.kind == "head"] == ["first-grid"]
    done.clear()
    both = benchmark(zoo.images, config=two, out=out)
    assert {base for _, base in done} == {"further"}
    assert heads(both).keys() == {"first-grid", "further-grid"}
    assert heads(both)["first-grid"].top1 == heads(first)["first-grid"].top1
    done.clear()
    assert heads(benchmark(zoo.images, config=two, out=out)) == heads(both)
    assert done == []
    shutil.rmtree(out / "bundles" / both.winner.name)  # as where another row had won before
    again = benchmark(zoo.images, config=two, out=out)
    assert (out / again.winner.bundle / "model.onnx").is_file()
    zoo.onnx("first", seed=2)
    other = benchmark(zoo.images, config=one, out=out)
    assert {base for _, base in done} == {"first"}
    assert [row.name for row in other.rows if row.kind == "head"].count("first-grid") == 1
