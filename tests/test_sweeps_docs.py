"""What docs/sweeps.md shows works."""

import re
from pathlib import Path

import yaml

from headsmith.trainer.losses import RELAXATIONS
from headsmith.trainer.presets import preset_names
from headsmith.trainer.sweep.grid import read_plan

TEXT = (Path(__file__).parent.parent / "docs" / "sweeps.md").read_text(encoding="utf-8")


def test_the_sweep_file():
    (text,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    plan = read_plan(yaml.safe_load(text), None, None)
    assert len(plan.trials) == 2 * (3 + 2 + 3 * 2 * 3 * 3)
    assert len({trial.group for trial in plan.trials}) == 5
    assert plan.final_seeds == [0, 1, 2, 3, 4]


def test_the_study_has_every_relaxation_and_its_two_baselines():
    plan = read_plan(Path(__file__).parent.parent / "docs" / "worth_it.yaml", None, None)
    groups = {trial.group for trial in plan.trials}
    assert groups == {*RELAXATIONS, "cross-entropy, tuned", "cross-entropy over the 16 hardest"}
    assert len(plan.trials) == 9 + 2 + 6 + 6 * (4 + 2)
    assert len(plan.final_seeds) == 5


def test_every_preset_is_in_the_table():
    assert set(re.findall(r"^\| `((?:paper/)?\w+)` \|", TEXT[TEXT.index("| preset |") :], re.MULTILINE)) == set(
        preset_names()
    )
