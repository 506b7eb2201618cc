"""Training without a choice of loss: the short sweep, and its winner as a run."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.errors import InputError
from ..core.files import check_free, new_folder
from .features.feature_set import FeatureSet
from .run import Run
from .run_record import RECORD
from .sweep.result import BEST
from .sweep.sweeping import sweep

PRESET = "quick"


def train_auto(
    features: FeatureSet, out: Path, preset: str | None, settings: Mapping[str, Any], *, overwrite: bool
) -> Run:
    """Sweep losses and their settings, and make the winner the run at ``out``.

    The sweep, which says what the winner is worth, is kept in ``OUT.sweep``.

    Args:
        features: A feature set with a validation split.
        out: The run folder to make.
        preset: Whose grid is trained; ``quick`` where none is named.
        settings: Fields of `TrainConfig` that all heads share, in place of the preset's.
        overwrite: Replace the run and the sweep.

    Raises:
        InputError: Whatever `headsmith.sweep` raises, or an ``out`` that exists.
    """
    replace = RECORD if overwrite else None
    check_free(out, replace=replace)
    folder = out.resolve().with_name(f"{out.resolve().name}.sweep")
    sweep(features, out=folder, config=dict(settings) or None, preset=preset or PRESET, overwrite=overwrite)
    with new_folder(out, replace=replace) as made:
        shutil.copytree(folder / BEST, made, dirs_exist_ok=True)
    return Run.load(out)


def refuse_beside_auto(**options: object) -> None:
    """Refuse options of `headsmith.train` that a sweep does not take.

    Raises:
        InputError: One of them is given.
    """
    for name, value in options.items():
        if value is not None:
            raise InputError(
                f"--{name.replace('_', '-')}: {value} found, but --loss auto trains many heads at once; leave it out"
            )
