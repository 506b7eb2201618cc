"""The command line as a user meets it."""

import dataclasses
import errno
import inspect
import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import headsmith
from headsmith.cli import app
from headsmith.trainer import TrainConfig
from headsmith.trainer.train_config import EPOCHS, PATIENCE, PATIENCE_STEPS, STEPS

TWINS = {
    "backbones": headsmith.list_backbones,
    "extract": headsmith.extract,
    "import": headsmith.import_features,
    "inspect": headsmith.inspect_features,
    "train": headsmith.train,
    "sweep": headsmith.sweep,
    "export": headsmith.export_classifier,
    "evaluate": headsmith.evaluate_classifiers,
    "predict": headsmith.predict,
    "report": headsmith.write_report,
    "compare": headsmith.compare,
    "push": headsmith.push,
    "graft": headsmith.graft,
    "info": headsmith.file_info,
    "verify": headsmith.verify,
}
SETTINGS = [field.name for field in dataclasses.fields(TrainConfig)]
runner = CliRunner()


def called(command: typer.models.CommandInfo) -> str:
    return command.name or command.callback.__name__


def plain(value: object) -> object:
    """Enum members and lists of them as the strings that Python takes."""
    if isinstance(value, list | tuple):
        return tuple(plain(item) for item in value)
    return getattr(value, "value", value)


@pytest.mark.parametrize("name", TWINS)
def test_flags_are_the_keywords_with_the_same_defaults(name):
    command = next(c for c in app.registered_commands if called(c) == name)
    flags = {key: plain(p.default) for key, p in inspect.signature(command.callback).parameters.items()}
    for shown_only in ("json", "show_preset"):
        flags.pop(shown_only, None)
    keywords = {key: plain(p.default) for key, p in inspect.signature(TWINS[name]).parameters.items()}
    if keywords.pop("settings", None):
        keywords |= dict.fromkeys(SETTINGS)  # left out, they leave the choice to the settings file
    assert flags == keywords


def test_help_tells_the_default_of_every_setting():
    command = next(c for c in app.registered_commands if c.callback.__name__ == "train")
    annotations = inspect.get_annotations(command.callback, eval_str=True)
    shown = {name: annotations[name].__metadata__[0].show_default for name in SETTINGS}
    words = {"None": "the loss's", "False": "no"}
    defaults = {field.name: str(field.default) for field in dataclasses.fields(TrainConfig)}
    expected = {name: words.get(value, value) for name, value in defaults.items()}
    assert shown == expected | {
        "epochs": f"{EPOCHS}, or {STEPS:,} steps",
        "patience": f"{PATIENCE}, or {PATIENCE_STEPS} steps",
        "learning_rate": "the loss's, for features of this size",
    }


def test_help_is_quick_and_does_not_import_torch():
    code = "import sys; from headsmith.cli import app; print([m for m in ('torch', 'onnxruntime') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("command", [called(c) for c in app.registered_commands])
def test_help_of_every_command(command):
    result = runner.invoke(app, [command, "--help"], terminal_width=200, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    assert "Options" in result.output


def test_help_tells_the_defaults_that_others_choose():
    assert "the loss's" in runner.invoke(app, ["train", "--help"], env={"COLUMNS": "200"}).output


def test_a_full_disk_is_told_with_a_way_out(tiny_run, tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("headsmith.export.exporting.write_labels", full)
    result = runner.invoke(app, ["export", str(tiny_run.path), "--out", str(tmp_path / "bundle")])
    assert result.exit_code == 2
    assert "No space left on device; make room and run the same command again" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_may_not_be_written(tiny_run, tmp_path, monkeypatch):
    """Simulated, because root may write everywhere."""

    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path))

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    result = runner.invoke(app, ["export", str(tiny_run.path), "--out", str(tmp_path / "bundle")])
    assert result.exit_code == 2
    assert f"{tmp_path}: Permission denied; check the path and its permissions" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_no_argument_prints_help():
    result = runner.invoke(app, [])
    assert "extract" in result.output
    assert "evaluate" in result.output


def test_version():
    assert runner.invoke(app, ["--version"]).output.strip() == headsmith.__version__


def test_import_prints_nothing_and_names_exist():
    code = "import headsmith; assert all(getattr(headsmith, name) is not None for name in headsmith.__all__)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


def test_doctor_finds_the_cpu_provider():
    findings = json.loads(runner.invoke(app, ["doctor", "--json"]).output)
    assert findings["providers"]["CPUExecutionProvider"] is True
    assert findings["versions"]["headsmith"] == headsmith.__version__


def test_a_mistake_is_one_line_and_status_2(tmp_path):
    result = runner.invoke(app, ["train", str(tmp_path / "gone"), "--out", str(tmp_path / "run")])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "gone" in result.stderr
    assert not (tmp_path / "run").exists()


def test_debug_shows_the_traceback(tmp_path):
    result = runner.invoke(app, ["--debug", "train", str(tmp_path / "gone"), "--out", str(tmp_path / "run")])
    assert result.exit_code == 2
    assert "Traceback (most recent call last)" in result.stderr


@pytest.mark.parametrize("text", ["a,b", ",", ".5;.5"])
def test_p_k_that_is_no_list_of_numbers(tmp_path, text):
    result = runner.invoke(app, ["train", str(tmp_path), "--out", str(tmp_path / "run"), "--p-k", text])
    assert result.exit_code == 2
    assert "numbers between commas" in result.stderr
