import re
import shutil

import pytest
import torch
import yaml

from headsmith.core.errors import DamagedFileError, InputError
from headsmith.core.files import read_json, write_json
from headsmith.models import save_head
from headsmith.trainer import FeatureSet, Run, TrainConfig


@pytest.fixture
def run(tiny_run, tmp_path):
    """A copy that may be damaged."""
    return shutil.copytree(tiny_run.path, tmp_path / "run")


def test_it_loads_and_says_what_it_came_from(run, tiny_run):
    loaded = Run.load(run)
    assert torch.equal(loaded.head.weight, tiny_run.head.weight)
    assert loaded.class_names == ["cat", "dog", "emu", "fox", "gnu", "hen"]
    assert loaded.record.backbone.spec == "timm:test_resnet"
    assert loaded.record.features.fingerprint


def test_it_shows_how_large_and_how_good_it_is(tiny_run):
    assert re.fullmatch(
        r"Run\('.*/run': softmax, 6 classes, val top-1 \d+\.\d %, val top-5 \d+\.\d %, "
        r"test top-1 \d+\.\d %, test top-5 \d+\.\d %\)",
        repr(tiny_run),
    )
    features = FeatureSet.load(tiny_run.record.features.path)
    assert repr(features).endswith("train 96, val 12, test 12 rows, 6 classes, D = 96, float16)")


@pytest.mark.parametrize("part", ["head.safetensors", "config.yaml", "run.json"])
def test_a_missing_part_is_named(run, part):
    (run / part).unlink()
    with pytest.raises(InputError, match=rf"{part}: not found"):
        Run.load(run)


def test_no_run_folder(tmp_path):
    with pytest.raises(InputError, match=r"gone: no such run folder; `headsmith train` makes one"):
        Run.load(tmp_path / "gone")


def test_the_head_of_another_run_is_refused(run, tiny_run):
    other = tiny_run.head
    with torch.no_grad():
        other.bias[0] += 1
        save_head(other, run / "head.safetensors")
        other.bias[0] -= 1
    with pytest.raises(InputError, match=r"not the head that run\.json describes"):
        Run.load(run)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("class_names", lambda record: record["class_names"].reverse()),
        ("results", lambda record: record["results"]["test"].update(top1=0.123)),
        ("seed", lambda record: record.pop("seed")),
        ("note", lambda record: record.update(note="mine")),
    ],
)
def test_a_record_that_was_edited_is_refused_with_the_field(run, field, change):
    record = read_json(run / "run.json")
    change(record)
    write_json(run / "run.json", record)
    with pytest.raises(DamagedFileError, match=rf"run\.json: {field}: not what the training wrote"):
        Run.load(run)


@pytest.mark.parametrize("change", [lambda text: "{}\n", lambda text: text.replace("seed: 0", "seed: 1")])
def test_settings_that_were_edited_are_refused(run, change):
    path = run / "config.yaml"
    text = path.read_text()
    path.write_text(change(text))
    assert path.read_text() != text
    with pytest.raises(DamagedFileError, match=r"config\.yaml: not the settings of this run \(hash differs\)"):
        Run.load(run)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda record: record.pop("fields_sha256"), "fields_sha256: missing"),
        (lambda record: record.update(fields_sha256=None), "fields_sha256: missing"),
        (lambda record: record["fields_sha256"].clear(), "backbone, class_names, config_sha256: not what the training"),
        (lambda record: record["fields_sha256"].pop("class_names"), "class_names: not what the training wrote"),
        (lambda record: record.pop("config_sha256"), "class_names, config_sha256: not what the training wrote"),
        (lambda record: record.pop("head_sha256"), "class_names, head_sha256: not what the training wrote"),
    ],
)
def test_who_takes_a_hash_away_does_not_switch_off_its_check(run, change, match):
    record = read_json(run / "run.json")
    record["class_names"].reverse()
    change(record)
    write_json(run / "run.json", record)
    with pytest.raises(DamagedFileError, match=rf"run\.json: {match}.*train again"):
        Run.load(run)


def test_a_config_with_an_unknown_key_is_refused(tmp_path):
    TrainConfig().save(tmp_path / "config.yaml")
    values = yaml.safe_load((tmp_path / "config.yaml").read_text())
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(values | {"lr": 1}))
    with pytest.raises(InputError, match=r"config.yaml: lr: is no setting; did you mean learning_rate"):
        TrainConfig.load(tmp_path / "config.yaml")
    (tmp_path / "config.yaml").write_text("a: [")
    with pytest.raises(InputError, match="not valid YAML"):
        TrainConfig.load(tmp_path / "config.yaml")
