"""What docs/evaluation.md shows works."""

import re
from pathlib import Path

import numpy as np
from adversarial_rows import many

from headsmith.evaluate.metrics import score_rows

TEXT = (Path(__file__).parents[3] / "docs" / "evaluation.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_metrics(capsys):
    (example,) = [block for block in BLOCKS if "Scorer(" in block]
    batches = [many(rows=30, classes=1000, seed=seed) for seed in range(2)]
    exec(example, {"batches": batches})  # noqa: S102
    share = np.mean([logits.argmax(axis=1) == labels for logits, labels in batches])
    assert capsys.readouterr().out.startswith(f"{100 * share:.2f} % (")


def test_standings(capsys):
    (example,) = [block for block in BLOCKS if "standings" in block]
    logits, labels = many()
    better = score_rows(logits + 3 * np.eye(20)[labels], labels)
    exec(example, {"scores_of_a": score_rows(logits, labels), "scores_of_b": better})  # noqa: S102
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("b ")
    assert first.endswith("tied with the best")
    assert second.startswith("a ")
    assert "tied" not in second
