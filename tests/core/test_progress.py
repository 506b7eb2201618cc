"""A log gets a line now and then, a terminal a line that goes."""

import pytest

from headsmith.core import progress as module
from headsmith.core.progress import progress


@pytest.mark.parametrize(("seconds", "lines"), [(0.0, 2), (3600.0, 0)])
def test_a_log_gets_a_line_now_and_then(seconds, lines, capsys, monkeypatch):
    monkeypatch.setattr(module, "_EVERY", seconds)
    with progress("Training softmax", 3000, "images", done=1000) as show:
        show(500, "loss 1.0")
        show(1500, "loss 0.5")
    found = capsys.readouterr().err.splitlines()
    assert len(found) == lines
    if lines:
        assert found == [
            "Training softmax: 1,500 of 3,000 images  loss 1.0",
            "Training softmax: 3,000 of 3,000 images  loss 0.5",
        ]


def test_processes_that_are_not_the_first_say_nothing(capsys, monkeypatch):
    monkeypatch.setattr(module, "_EVERY", 0.0)
    with progress("Training softmax", 10, "images", shown=False) as show:
        show(5)
    assert capsys.readouterr().err == ""
