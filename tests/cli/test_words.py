"""The command line speaks of its flags, Python of its keywords."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_iris
from typer.main import get_command
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.keywords_as_flags import flags_of, with_flags
from headsmith.trainer import FeatureSet, Run, import_features, inspect_features


def headsmith(*arguments):
    result = CliRunner().invoke(
        app, [str(argument) for argument in arguments], prog_name="headsmith", env={"COLUMNS": "200"}
    )
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture(scope="module")
def iris(tmp_path_factory):
    path = tmp_path_factory.mktemp("iris") / "set"
    FeatureSet.from_arrays(*load_iris(return_X_y=True), out=path)
    return path


def test_a_warning_of_a_run(iris, tmp_path):
    status, said = headsmith("train", iris, "--out", tmp_path / "run", "--learning-rate", 1e30, "--epochs", 3)
    assert status == 4
    assert "warning (runaway): the training loss" in said
    assert "that of equal scores for all classes; lower --learning-rate (now 1e+30)" in said
    warning = Run.load(tmp_path / "run").record.warnings[0]
    assert warning.message.endswith("that of equal scores for all classes; lower `learning_rate` (now 1e+30)")


def test_a_note_of_an_import(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    splits = {"train": slice(0, 50), "val": slice(50, 55), "test": slice(55, 60)}
    labels = np.arange(60) % 50
    held = {f"{split}_{name}": of[part] for split, part in splits.items() for name, of in (("x", rows), ("y", labels))}
    np.savez(tmp_path / "a.npz", **held)
    status, said = headsmith("import", tmp_path / "a.npz", "--out", tmp_path / "set")
    assert status == 0
    assert "may be no label; name another column with --label-column" in said
    found = import_features(tmp_path / "a.npz", out=tmp_path / "twin").manifest.warnings
    (warning,) = [one.message for one in found if one.code == "not-labels"]
    assert warning.endswith("name another column with `label_column`")
    assert "name another column with --label-column" in headsmith("inspect", tmp_path / "set")[1]


@pytest.mark.parametrize(("name", "flag"), [("labels", "--label-column"), ("features", "--feature-column")])
def test_a_file_that_is_only_read_is_told_of_the_command_that_has_the_option(tmp_path, name, flag):
    x = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    y = np.arange(60) % 3
    more = {"labels": {"a": y, "b": y}, "features": {"w": x, "a": y}}[name]
    path, out = tmp_path / "two.npz", tmp_path / "set"
    np.savez(path, v=x, **more)
    status, said = headsmith("inspect", path)
    advised = f"headsmith import FILE {flag} NAME --out FOLDER"
    assert status == 2
    assert said.endswith(
        f"may be {name}: {said.split(f'{name}: ')[-1].split(';')[0]}; say which with `{advised}`, "
        "whose folder can be read"
    )
    with pytest.raises(ValueError, match=f"`{advised}`"):
        inspect_features(path)
    words = {"FILE": path, "NAME": {"labels": "b", "features": "w"}[name], "FOLDER": out}
    assert headsmith(*(words.get(word, word) for word in advised.split()[1:]))[0] == 0
    assert headsmith("inspect", out)[0] in (0, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("train", "loss", "--out", "x"), "loss: no such file or folder"),
        (("train", "seed", "--out", "x"), "seed: is not a feature set"),
        (("inspect", "seed"), "seed: is not a feature set"),
        (("evaluate", "data", "--data", "labels", "--out", "x"), "data: no model in it"),
        (("import", "labels", "--out", "x"), "labels: holds no file with features"),
        (("info", "k"), "k: no such file"),
        (("sweep", "iris", "--out", "x", "--config", "config"), "config: not found"),
        (("train", "iris", "--out", "seed", "--overwrite"), "seed: holds no run.json, so it is not replaced"),
        (("export", "format", "--out", "x"), "format: no such run folder"),
        (("report", "out"), "out: holds no results"),
        (("train", "iris", "--out", "x", "--config", "momentum"), "momentum: not found"),
        (("train", "iris", "--out", "x", "--m", 1), "--m: 1 found"),
        (("train", "iris", "--out", "x", "--p-k", "1,1"), "--p-k: sums to 2"),
        (("train", "iris", "--out", "x", "--select", "top5"), "--select: top5 found"),
        (("train", "iris", "--out", "x", "--warmup", 9, "--epochs", 3), "--warmup: 9.0 epochs found"),
        (("train", "iris", "--out", "x", "--preset", "paper/cifar100", "--loss", "neuralsort"), "--preset paper/cif"),
        (("sweep", "iris", "--out", "x", "--preset", "paper/cifar100"), "--preset paper/cifar100: p_k: 5 weights"),
        (("train", "iris", "--out", "x", "--config", "start"), "start: m: 1 found"),
        (("sweep", "iris", "--out", "x", "--config", "preset"), "preset paper/cifar100: p_k: 5 weights"),
    ],
)
def test_a_path_that_is_spelt_as_a_keyword_stays_as_it_was_typed(iris, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris").symlink_to(iris)
    for name in ("seed", "data"):
        (tmp_path / name).mkdir()
    picture = tmp_path / "labels" / "a"
    picture.mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(picture / "0.png")
    (tmp_path / "seed" / "mine").write_text("x")
    (tmp_path / "start").write_text("m: 1")
    (tmp_path / "preset").write_text("preset: paper/cifar100\nloss: neuralsort")
    status, found = headsmith(*arguments)
    assert status == 2
    assert found.split("headsmith: ")[-1].startswith(said)


COMMANDS = get_command(app).commands
KEYWORDS = sorted({param.name for command in COMMANDS.values() for param in command.params})


@pytest.mark.parametrize("command", COMMANDS)
def test_a_message_names_no_flag_that_its_command_lacks_unless_it_says_whose_it_is(command):
    group = get_command(app)
    with flags_of(group, SimpleNamespace(invoked_subcommand=command)):
        said = {keyword: with_flags(f"give `{keyword}` or `{keyword}`") for keyword in KEYWORDS}
    own = {flag for param in COMMANDS[command].params for flag in param.opts}
    for text in said.values():
        for flag in {*re.findall(r"--[a-z0-9-]+", text)} - own:
            assert text.count("(an option of ") == 1
            for other in re.split(", | and ", text.partition("(an option of ")[2].partition(")")[0]):
                assert flag in [name for param in COMMANDS[other].params for name in param.opts]


def test_verify_names_no_option_that_it_lacks(tiny_bundle, tiny_run):
    status, said = headsmith("verify", tiny_bundle.path, "--data", tiny_run.record.features.path)
    assert status == 2
    assert said.endswith(": is a feature set, which holds no images; expected the images themselves")


def test_info_says_whose_option_names_a_layer(onnx_file):
    two = onnx_file("""(float[N, 4] x) => (float[N, 2] a, float[N, 2] b) {
        a = MatMul(x, v)
        b = MatMul(x, w)
    }""", v=(4, 2), w=(4, 2))  # fmt: skip
    status, said = headsmith("info", two)
    assert status == 0
    assert "--layer (an option of" in said.replace("│", "").replace("  ", " ")
    assert "`layer`" not in said


def test_outside_of_a_command_nothing_is_changed():
    assert with_flags("lower `learning_rate`") == "lower `learning_rate`"
