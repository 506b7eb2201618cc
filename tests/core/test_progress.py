"""A log gets a line now and then, a terminal a line that goes and fits."""

import io
import re
import time

import pytest

from headsmith.core import progress as module
from headsmith.core.progress import progress, stage
from headsmith.core.terminal import Terminal


@pytest.mark.parametrize(("seconds", "lines"), [(0.0, 2), (3600.0, 0)])
def test_a_log_gets_a_line_now_and_then(seconds, lines, capsys, monkeypatch):
    monkeypatch.setattr(module, "_EVERY", seconds)
    with progress("Importing", 3000, "rows", done=1000) as show:
        show(500, "loss 1.0")
        show(1500, "loss 0.5")
    found = capsys.readouterr().err.splitlines()
    assert len(found) == lines
    if lines:
        assert found == ["Importing: 1,500 of 3,000 rows  loss 1.0", "Importing: 3,000 of 3,000 rows  loss 0.5"]


def test_a_log_of_a_training_says_the_epoch(capsys, monkeypatch):
    monkeypatch.setattr(module, "_EVERY", 0.0)
    with progress("Training softmax", 100, "images", done=200, epochs=4) as show:
        for _ in range(4):
            show(50)
    found = capsys.readouterr().err.splitlines()
    assert found == [f"Training softmax: epoch {epoch} of 4" for epoch in (3, 3, 4, 4)]


def test_a_stage_that_takes_long_gets_a_line_at_once_and_again(capsys, monkeypatch):
    """The clock is the test's: a line after a second, then every ten."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    said = []
    with progress("Extracting", 100, "images") as show:
        for second in range(1, 31):
            now[0] = second
            show(1)
            said += [second] * len(capsys.readouterr().err.splitlines())
    assert said == [1, 11, 21]


def test_what_cannot_say_how_far_it_is_is_named(capsys, monkeypatch):
    monkeypatch.setattr(module, "_FIRST", 0.01)
    with stage("Loading lite0"):
        time.sleep(0.2)
    with stage("Loading nothing"):
        pass
    assert capsys.readouterr().err == "Loading lite0 ...\n"


def test_processes_that_are_not_the_first_say_nothing(capsys, monkeypatch):
    monkeypatch.setattr(module, "_EVERY", 0.0)
    monkeypatch.setattr(module, "_FIRST", 0.0)
    with progress("Training softmax", 10, "images", shown=False) as show:
        show(5)
    monkeypatch.setenv("RANK", "1")
    with stage("Loading lite0"):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("title", "total", "epochs", "seen"),
    [
        ("Training softmax", 1_281_167, 100, "epoch 50 of 100"),
        ("Training 24 heads", 50_000, 20, "epoch 10 of 20"),
        ("Extracting", 1_281_166, 0, "640,583 of 1,281,166 images"),
    ],
)
def test_the_bar_is_seen_at_80_columns(title, total, epochs, seen, monkeypatch):
    screen = io.StringIO()
    options = {"file": screen, "force_terminal": True, "width": 80, "color_system": None}
    monkeypatch.setattr(module, "Terminal", lambda stderr: Terminal(**options))
    with progress(title, total, "images", epochs=epochs) as show:
        show(total * max(epochs, 1) // 2, "loss 0.1234  val top-1 45.1%  top-5 78.9% and whatever else there is to say")
    plain = re.sub(r"\x1b\[[?\d]*[A-Za-z]", "", screen.getvalue())
    lines = [line for line in re.split(r"[\r\n]+", plain) if seen in line]
    assert lines
    assert all(title in line and "━" * 4 in line and len(line) <= 80 for line in lines)
    assert any("loss" in line for line in lines)
