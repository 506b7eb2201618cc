"""What the wheel must hold."""

import tomllib
from pathlib import Path

from headsmith.models.heads import HEADS
from headsmith.trainer.train_config import TrainConfig

ROOT = Path(__file__).parent.parent
FOLDERS = ("headsmith", "models", "trainer", "export", "evaluate")


def test_every_folder_of_code_is_packaged():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {path.parent.relative_to(ROOT) for name in FOLDERS for path in (ROOT / name).rglob("*.py")}
    packages = {"headsmith" if str(path).startswith("headsmith") else "headsmith." + path.parts[0] for path in folders}
    named = {".".join(("headsmith", *path.parts)).replace("headsmith.headsmith", "headsmith") for path in folders}
    assert set(settings["packages"]) == named
    assert set(settings["package-dir"]) == packages


def test_every_head_can_be_asked_for():
    assert TrainConfig.__dataclass_fields__["head"].metadata["values"] == tuple(HEADS)
