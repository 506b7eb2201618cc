"""From a feature set to a run folder."""

import math
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from ..core.arguments import typed
from ..core.distributed import Processes
from ..core.errors import InputError
from .auto_loss import refuse_beside_auto, train_auto
from .feature_scale import OWN_RATES, column_size, for_size
from .features.feature_set import FeatureSet
from .fitting import METRICS, fit_heads
from .fitting.checkpoint import CheckpointFolder
from .initialization import initialized_head
from .objective_settings import AUTO
from .presets import load_preset
from .resolved_settings import resolve
from .run import Run
from .run_writer import check_finite, write_run
from .settings_file import GivenSettings, read_from, read_settings
from .tensorboard import epoch_log
from .train_config import TrainConfig
from .unfinished_run import unfinished, was_cut
from .unused_settings import refuse_unused


@typed
def train(
    features: str | Path | FeatureSet,
    *,
    out: str | Path,
    preset: str | None = None,
    config: str | Path | None = None,
    gpu_memory: float | None = None,
    tensorboard: str | Path | None = None,
    overwrite: bool = False,
    **settings: Annotated[Any, TrainConfig],
) -> Run:
    """Train a head and write a run folder.

    After every epoch the validation split is scored, and the best epoch is kept (see `TrainConfig.select`), the lower
    validation loss deciding between equals. The test split is scored once, with that head. An unfinished run is kept
    in ``OUT.partial``; the same call goes on from there. The loss ``auto`` is the best of a short sweep, which is
    kept in ``OUT.sweep``. Started by ``torchrun``, all processes work on one head.

    Args:
        features: A feature set, or its folder.
        out: The run folder to make.
        preset: Published settings for the loss, such as ``paper/imagenet1k``, under those of ``config``.
        config: A YAML file with settings; those given here by name win.
        gpu_memory: Gigabytes that the training features may take on a GPU; more are streamed to it. By default what
            is free.
        tensorboard: Folder for TensorBoard's curves.
        overwrite: Replace an existing run folder, and an unfinished one of other settings.
        settings: The fields of `TrainConfig`.

    Returns:
        The run.

    Raises:
        InputError: A setting that does not fit the feature set, a damaged feature set, or an ``out`` that exists.
    """
    if gpu_memory is not None and not 0 <= gpu_memory < math.inf:
        raise InputError(f"--gpu-memory: {gpu_memory} found, expected gigabytes, 0 or more")
    feature_set = features if isinstance(features, FeatureSet) else FeatureSet.load(features)
    read = {} if config is None else read_settings(config, TrainConfig)
    asked = {**read, **settings}
    if asked.pop("loss", None) == AUTO:
        refuse_beside_auto(gpu_memory=gpu_memory, tensorboard=tensorboard)
        return train_auto(feature_set, Path(out), preset, asked, overwrite=overwrite)
    with read_from(config, read.keys() - settings.keys()):
        published = _published(preset, {**read, **settings}, feature_set)
        with read_from(f"--preset {preset}", published.keys() - read.keys() - settings.keys()):
            chosen = TrainConfig(**(published | read | settings))
            refuse_unused(chosen, read, settings)
            resolved = resolve(chosen, len(feature_set.class_names), feature_set.arrays("train")[0])
        initialization = initialized_head(
            chosen, feature_set.feature_dim, feature_set.class_names, feature_set.manifest.backbone
        )
        processes = Processes.joined(chosen.device)
    out = Path(out)

    def is_this(run: Run) -> bool:
        return (run.config, run.record.features.fingerprint) == (resolved, feature_set.fingerprint)

    if processes.broadcast(f"cut {out}", lambda: was_cut(out, is_this)):
        return Run.load(out)
    with unfinished(out, "training", overwrite, processes) as folder, epoch_log(tensorboard) as log:
        [fitted] = fit_heads(
            {name: feature_set.arrays(name) for name in feature_set.splits},
            len(feature_set.class_names),
            [chosen],
            initialization,
            keep=CheckpointFolder(folder, {"features": feature_set.fingerprint}, overwrite),
            memory=None if gpu_memory is None else int(gpu_memory * 1e9),
            on_epoch=log,
            processes=processes,
        )
        check_finite(fitted)
        write = partial(write_run, out, feature_set, fitted, folder / METRICS)
        processes.broadcast(f"write {out}", lambda: write(processes=processes.count, overwrite=overwrite))
    return Run.load(out)


def _published(preset: str | None, chosen: GivenSettings, features: FeatureSet) -> GivenSettings:
    """What a preset says of the loss that was chosen, or of the default; its rates may be for features of a size."""
    if preset is None:
        return {}
    named = load_preset(preset)
    settings = named.settings_of(chosen.get("loss", TrainConfig.loss))
    if named.unit_features and not OWN_RATES & chosen.keys():
        size = column_size(features.arrays("train")[0])
        rate, decay = for_size(size, settings["learning_rate"], settings["weight_decay"])
        settings |= {"learning_rate": rate, "weight_decay": decay}
    return settings
