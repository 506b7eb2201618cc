"""A command line that cannot be read is told in one line, with where its help is."""

import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import headsmith
from headsmith.cli import app
from headsmith.core.errors import InputError


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("train --epoch 3 x", "No such option: --epoch (Possible options: --epochs); see headsmith train --help"),
        ("trian", "No such command 'trian'. Did you mean 'train'?; see headsmith --help"),
        ("train", "Missing argument 'features'; see headsmith train --help"),
        ("train x --out", "Option '--out' requires an argument; see headsmith train --help"),
        ("train x --out y --m abc", "--m: 'abc' found, expected a whole number; see headsmith train --help"),
        ("export x --out y --opset 1e3", "--opset: '1e3' found, expected a whole number; see headsmith export --help"),
        ("train x --out y --noise much", "--noise: 'much' found, expected a number; see headsmith train --help"),
        ("evaluate x --data y --k 1,x", "--k: '1,x' found, expected whole numbers such as 1,5"),
        ("train x --out y --p-k .5,x", "--p-k: '.5,x' found, expected numbers between commas such as .5,0,0,0,.5"),
        (
            "export x --out y --format onx",
            "--format: 'onx' found, expected one of onnx, torchscript, pt2, timm, triton",
        ),
        ("export x --out y --fp16", "--fp16 is now --precision fp16; see headsmith export --help"),
        ("export x --out y --int8-dynamic", "--int8-dynamic is now --precision int8-dynamic; see"),
        ("export x --out y --weak-gate", "--weak-gate is now a higher --max-drop; see headsmith export --help"),
        (
            "export x --out y --precision fp8",
            "--precision: 'fp8' found, expected one of fp32, fp16, int8",
        ),
        ("import x --out y --labels-column z", "--labels-column is now --label-column; see headsmith import --help"),
        (
            "evaluate x --data y --k 1 --k 2 --k=9",
            "--k: given 3 times, expected once, with commas between its values; see",
        ),
        ("train x --out y --p-k 1 --p-k 0,1", "--p-k: given 2 times, expected once, with commas between its values"),
        ("train x --out y --loss softmax --loss softsort", "--loss: given 2 times, expected once; see headsmith train"),
        ("train x --out y --out z", "--out: given 2 times, expected once; see headsmith train --help"),
        ("inspect x --json --json", "--json: given 2 times, expected once; see headsmith inspect --help"),
        ("demo extra", "Got unexpected extra argument(s) (extra); see headsmith demo --help"),
        ("train \x1b[31m --out", "Option '--out' requires an argument; see headsmith train --help"),
        ("train --n\x1b[2J", "No such option: --n\\x1b[2J"),
    ],
)
def test_what_is_wrong_and_where_the_help_is(line, told):
    result = CliRunner().invoke(app, line.split(), prog_name="headsmith")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"headsmith: {told}")
    assert result.stderr.count("\n") == 1
    assert result.stderr.isascii()
    assert "\x1b" not in result.stderr
    assert result.stdout == ""


def test_keywords_of_python_are_flags_here_and_keywords_there(tmp_path):
    result = CliRunner().invoke(app, ["predict", str(tmp_path), "a.png", "--k", "0"], prog_name="headsmith")
    assert result.stderr.startswith("headsmith: --k: 0 found, expected")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("kept")
    features = tmp_path / "features.npz"
    np.savez(features, x=np.eye(30, dtype=np.float32), y=np.arange(30) % 3)
    result = CliRunner().invoke(app, ["import", str(features), "--out", str(tmp_path / "full")], prog_name="headsmith")
    assert "choose another --out or pass --overwrite" in result.stderr
    with pytest.raises(InputError, match="choose another `out` or pass `overwrite` to replace it"):
        headsmith.import_features(features, out=tmp_path / "full")


def test_what_nobody_foresaw_is_one_line_too(monkeypatch, tmp_path):
    def broken(*args, **keywords):
        raise TypeError("neither\nthis\x1b[31m nor that")

    monkeypatch.setattr("headsmith.evaluate.prediction.predict", broken)
    monkeypatch.setattr("headsmith.evaluate.predict", broken)
    result = CliRunner().invoke(app, ["predict", str(tmp_path), "a.png"], prog_name="headsmith")
    assert result.exit_code == 2
    assert result.stderr.startswith("headsmith: TypeError: neither this\\x1b[31m nor that; ")
    assert result.stderr.count("\n") == 1
    shown = CliRunner().invoke(app, ["--debug", "predict", str(tmp_path), "a.png"], prog_name="headsmith").stderr
    assert "Traceback" in shown and "in broken" in shown


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("headsmith ex", {"export", "extract"}),
        ("headsmith train --soft", {"--softmax-over", "--softsort-power"}),
        ("headsmith train --loss soft", {"soft_rank", "softmax", "softsort"}),
        ("headsmith export --precision int", {"int8", "int8-dynamic"}),
        ("headsmith export --format t", {"torchscript", "timm", "triton"}),
    ],
)
def test_the_shell_completes_commands_options_and_choices(words, completed):
    result = subprocess.run(
        [sys.executable, "-m", "headsmith"],
        env={
            "_HEADSMITH_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
            "PATH": "",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert set(result.stdout.split()) == completed
    assert "--install-completion" in CliRunner().invoke(app, ["--help"], prog_name="headsmith").stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["import", "", "--out", "x"], "an argument: '' found"),
        (["inspect", " "], "an argument: '' found"),
        (["train", "x", "--out", ""], "--out: '' found"),
        (["train", "x", "--out="], "--out: '' found"),
        (["import", "x", "--out", "y", "--label-column", ""], "--label-column: '' found"),
        (["evaluate", "x", "--data", "", "--out", "y"], "--data: '' found"),
    ],
)
def test_an_empty_text_is_no_path_and_no_name(arguments, told):
    result = CliRunner().invoke(app, arguments, prog_name="headsmith")
    assert result.exit_code == 2
    assert result.stderr == f"headsmith: {told}, expected a value\n"


def test_inspect_tells_what_is_in_the_place_of_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "loop.npz").symlink_to("loop.npz")
    for name, said in (("pipe.csv", "is a named pipe"), ("loop.npz", "Too many levels of symbolic links")):
        result = CliRunner().invoke(app, ["inspect", str(tmp_path / name)])
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert said in result.stderr
