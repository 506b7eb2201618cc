"""From a feature set and a grid to a folder with every head's result and the best head's run."""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch.distributed

from ...core.arguments import typed
from ...core.errors import InputError
from ...core.files import check_free, new_folder, read_json
from ..feature_scale import column_size, for_size
from ..features.feature_set import FeatureSet
from ..fitting import fit_heads
from ..initialization import initialized_head
from ..resolved_settings import resolve
from ..settings_file import read_from
from ..train_config import TrainConfig
from .bank_grouping import Trained, banks_of
from .comparison import compare_on_test
from .grid import SweepPlan, Trial, check_criterion, read_plan
from .model_selection import chosen_of, repeats, settings_of
from .output_files import write_best, write_sweep
from .result import Sweep
from .sweep_record import RECORD
from .unfinished import Partial, is_finished, open_partial, partial_of, read_bank, write_bank

# Of the settings of a rung, one in so many goes on to the next.
HALVING = 3
# Of an epoch of a rung; a small split takes as many epochs as make so many.
LEAST_STEPS = 40


@typed
def sweep(
    features: str | Path | FeatureSet,
    *,
    out: str | Path,
    config: str | Path | Mapping[str, Any] | None = None,
    preset: str | None = None,
    device: str | None = None,
    overwrite: bool = False,
) -> Sweep:
    """Train a grid of heads, many at once, and keep the best on validation.

    Heads that may share a pass over the data are trained side by side. A preset of our own climbs rungs (successive
    halving, Jamieson, Talwalkar 2016): all settings are trained for a few epochs, and the better third of them, the
    best of every group always among them, anew for more. Validation chooses: of every group (a named
    grid, or a loss) the setting with the best mean over its seeds, and among them the winner. Only then are the chosen
    heads, and no others, scored on the test split. Finished banks wait in ``OUT.partial``; after an interruption,
    whatever it was, the same call goes on where it stopped.

    Args:
        features: A feature set with a validation split, or its folder.
        out: The folder to make; see `Sweep` for what it holds.
        config: A YAML file, or what it would hold: fields of `TrainConfig`, each a value or a list of values, of which
            all combinations are trained; optionally ``preset``; ``grids``, a list of such grids with names; and
            ``final_seeds``, with which the chosen settings are trained once more.
        preset: Settings by name (see `headsmith.trainer.presets`) under those of ``config``, or their own grid:
            ``default`` where there is no ``config``, ``quick``, ``thorough``, or published ones.
        device: ``auto``, ``cpu`` or ``cuda``, in place of the file's.
        overwrite: Replace a sweep at ``out``.

    Returns:
        The sweep.

    Raises:
        InputError: A bad file (unknown key, wrong type, empty grid, a seed twice), settings that do not fit the
            features, no validation split, an ``out`` that exists, or no head that did not diverge.
    """
    started = time.perf_counter()
    if torch.distributed.is_torchelastic_launched():
        raise InputError("sweep: runs in one process; start it without torchrun")
    feature_set = features if isinstance(features, FeatureSet) else FeatureSet.load(features)
    plan = read_plan(config, preset, device)
    trials = _resolved(plan, feature_set)
    replace_one = RECORD if overwrite else None
    if _was_cut(Path(out), plan.request(feature_set.fingerprint)):
        with open_partial(Path(out), feature_set.fingerprint) as partial:
            shutil.rmtree(partial.folder)
        return Sweep.load(out)
    check_free(Path(out), replace=replace_one)
    with open_partial(Path(out), feature_set.fingerprint) as partial:
        heads = _climb(trials, plan.rungs, feature_set, partial, plan.where)
        chosen = chosen_of(settings_of(heads))
        again, first = repeats(chosen, plan.final_seeds), 1 + max(head.bank for head in heads)
        heads += _train(again, feature_set, partial, plan.where, first)
        settings = settings_of(heads)
        keys = [setting.key for setting in chosen]
        comparison = compare_on_test(chosen_of([one for one in settings if one.key in keys]), feature_set)
        with new_folder(out, replace=replace_one) as folder:
            write_best(folder, feature_set, comparison)
            write_sweep(folder, plan, feature_set, heads, settings, comparison, time.perf_counter() - started)
        shutil.rmtree(partial.folder)
    return Sweep.load(out)


def _was_cut(out: Path, request: str) -> bool:
    """Whether this very sweep is in place and only its finished banks were not yet removed."""
    if not partial_of(out).is_dir() or not (out / RECORD).is_file():
        return False
    return read_json(out / RECORD).get("request") == request


def _resolved(plan: SweepPlan, feature_set: FeatureSet) -> list[Trial]:
    """Every head once, with the settings that it will have on these features."""
    for split in ("train", "val"):
        if split not in feature_set.splits:
            raise InputError(
                f"{feature_set.path}: has no split {split!r}, found {feature_set.splits}; a sweep needs it"
            )
    classes, features = len(feature_set.class_names), feature_set.arrays("train")[0]
    trials = []
    size = column_size(features)
    for one in plan.trials:
        try:
            trials.append(replace(one, config=resolve(_suited(one.config, plan, size), classes, features)))
        except InputError as error:
            raise InputError(f"{plan.source_of(error.keyword, one.config)}: {error}") from None
    check_criterion(trials, plan.where)
    return list(dict.fromkeys(trials))


def _suited(config: TrainConfig, plan: SweepPlan, size: float) -> TrainConfig:
    """A preset's rates for features of this size."""
    if plan.unit_features and config.learning_rate is not None:
        rate, decay = for_size(size, config.learning_rate, config.weight_decay)
        config = replace(config, learning_rate=rate, weight_decay=decay)
    return config


def _climb(
    trials: list[Trial], rungs: Sequence[int], feature_set: FeatureSet, partial: Partial, where: str
) -> list[Trained]:
    """Train every setting, or by rungs of so many epochs each."""
    if not rungs:
        return _train(trials, feature_set, partial, where)
    heads: list[Trained] = []
    steps = -(-len(feature_set.arrays("train")[1]) // trials[0].config.batch_size)
    longer = max(-(-LEAST_STEPS // steps), 1)
    for epochs in [longer * epochs for epochs in rungs]:
        rung = [replace(one, config=replace(one.config, epochs=epochs, patience=epochs)) for one in trials]
        first = 1 + max((head.bank for head in heads), default=-1)
        heads += (found := _train(rung, feature_set, partial, where, first))
        settings = settings_of(found)
        best = {id(setting) for setting in chosen_of(settings)}
        kept = -(-len(settings) // HALVING)
        going = [one for place, one in enumerate(settings) if one.usable and (place < kept or id(one) in best)]
        trials = [head.trial for setting in going for head in setting.heads]
    return heads


def _train(trials: list[Trial], feature_set: FeatureSet, partial: Partial, where: str, first: int = 0) -> list[Trained]:
    """Train the banks that are not finished yet, the first of which has the number ``first``; errors name ``where``."""
    rows = {name: feature_set.arrays(name) for name in ("train", "val")}
    names, backbone = feature_set.class_names, feature_set.manifest.backbone
    banks = banks_of(trials, len(names), feature_set.feature_dim)
    with read_from(where, ("start",)):
        starts = [initialized_head(bank[0].config, feature_set.feature_dim, names, backbone) for bank in banks]
    heads: list[Trained] = []
    for number, (bank, start) in enumerate(zip(banks, starts, strict=True), first):
        path = partial.path(bank, start.record)
        if not is_finished(path):
            write_bank(path, fit_heads(rows, len(names), [trial.config for trial in bank], start))
        heads += read_bank(path, bank, number)
    return heads
