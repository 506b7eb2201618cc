from collections.abc import Callable
from pathlib import Path

import pytest

from headsmith.trainer import Run, finetune


@pytest.fixture(scope="session")
def photos(tiny_run: Run) -> str:
    """The images of `tiny_run`: 96, 12 and 12 of six classes."""
    return tiny_run.record.features.source.source


@pytest.fixture(scope="session")
def tuned_run(tiny_run: Run, photos: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """`tiny_run`, whose backbone learnt too. Read only."""
    out = tmp_path_factory.mktemp("tuned") / "run"
    return finetune(photos, out=out, start=str(tiny_run.path), epochs=2, batch_size=32, device="cpu")


@pytest.fixture
def tune(photos: str, tmp_path: Path, tiny_backbone) -> Callable[..., Run]:
    """A function: settings to a run that starts from the tiny backbone and a random head."""

    def run(out: str = "tuned", **settings: object) -> Run:
        return finetune(photos, out=tmp_path / out, **{**tiny_backbone._asdict(), "device": "cpu", **settings})

    return run
