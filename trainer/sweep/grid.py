"""From a sweep file to the heads that it asks for."""

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from ...core.errors import InputError
from ...core.files import sha256_json
from ...core.json_values import JsonObject
from ...core.printable import printable, shown
from ...core.typed_json import structured
from ...core.yaml_file import read_yaml
from ..feature_scale import OWN_RATES
from ..loss_defaults import METHOD_DEFAULTS, METHODS
from ..presets import Preset, load_preset
from ..settings_file import PRESET_KEYS, GivenSettings, no_setting, read_from
from ..train_config import TrainConfig
from ..unused_settings import without_unused
from .grid_values import HINTS, MOST_HEADS, values_of

COMMON = ("select", "device")
SELECT = "top1"
BASELINE = "softmax"
DEFAULT = "default"


@dataclass(frozen=True)
class Trial:
    """A head of a sweep.

    Attributes:
        group: The name of its grid, or its loss: within a group, validation chooses one setting.
        config: Its settings; those that its loss, optimiser or kind of head does not read have their default.
    """

    group: str
    config: TrainConfig


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep is to train.

    Attributes:
        trials: Every head, once.
        final_seeds: Seeds with which the setting that is chosen of every group is trained too.
        preset: The published settings that it builds on.
        where: The file, or the preset where there is none, for messages.
        rungs: Epochs of the rungs; none where every setting is trained to its end.
        unit_features: Whether the preset's rates follow the size of the features: nobody gave others.
    """

    trials: list[Trial]
    final_seeds: list[int]
    preset: Preset | None
    where: str
    rungs: list[int]
    unit_features: bool

    def source_of(self, setting: str | None, config: TrainConfig) -> str:
        """What says a setting of a head, for messages: the preset whose value it is, or else `where`."""
        if self.preset is None or self.where.startswith("--preset ") or self.preset.name == Path(self.where).name:
            return self.where
        published = self.preset.settings_of(config.loss)
        own = setting in published and getattr(config, setting) == published[setting]
        return f"preset {self.preset.name}" if own else self.where

    def request(self, fingerprint: str) -> str:
        """SHA-256 of what decides the sweep's result, on features with this fingerprint."""
        trials = [{"group": trial.group, "config": spelt_out(trial.config)} for trial in self.trials]
        asked = {"features": fingerprint, "trials": trials, "final_seeds": self.final_seeds, "rungs": self.rungs}
        return sha256_json(asked)


def read_plan(config: str | Path | Mapping[str, Any] | None, preset: str | None, device: str | None) -> SweepPlan:
    """The heads that a sweep file asks for.

    Args:
        config: The file, or what it would hold: settings, each a value or a list of values; ``preset``; and ``grids``,
            a list of such settings, each with an optional ``name``, to which the settings beside it are common; and
            ``final_seeds``; or a preset written out, as `preset_text` gives it. Without it and ``preset`` the preset
            ``default`` is trained.
            Where it has neither ``loss`` nor ``grids``, the preset's grids are taken.
        preset: Name of a preset, in place of the file's.
        device: In place of the file's.

    Raises:
        InputError: Not YAML, an unknown key, a value of the wrong type, an empty grid, seeds repeated, heads that are
            selected differently, or a preset that does not know a loss.
    """
    if config is None and preset is None:
        preset = DEFAULT
    where = f"--preset {preset}" if config is None else str(config) if isinstance(config, str | Path) else "config"
    given = dict(_read(config) if isinstance(config, str | Path) else config or {})
    chosen = _written_out(given, preset, where)
    name = given.pop("preset", None) if preset is None else preset
    given.pop("preset", None)
    if not isinstance(name, str | None):
        raise InputError(f"{where}: preset: {shown(name)} found, expected the name of one preset")
    with read_from(where, ("preset",) if preset is None else ()):
        chosen = chosen if name is None else load_preset(name)
    final_seeds = _seeds("final_seeds", given.pop("final_seeds", None), where)
    rungs: list[int] = []
    own_rates = not OWN_RATES & set(given)
    unit_features = chosen is not None and chosen.unit_features and own_rates
    if chosen is not None and not {"loss", "grids"} & set(given):
        final_seeds = final_seeds or chosen.final_seeds
        rungs = [] if {"epochs", "patience"} & set(given) else chosen.rungs
        given["grids"] = [{key: grid[key] for key in grid if key not in given} for grid in chosen.grids]
    if not given:
        raise InputError(f"{where}: no setting found; give at least one, such as `loss: [softmax, softsort]`")
    if device is not None:
        given["device"] = device
    grids = _grids(given, where)
    _check_size(grids, where)
    _check_names(grids, where)
    trials = [trial for grid in grids for trial in _trials(grid, chosen, where)]
    _check_common(trials, where)
    return SweepPlan(list(dict.fromkeys(trials)), final_seeds, chosen, where, rungs, unit_features)


def _written_out(given: GivenSettings, preset: str | None, where: str) -> Preset | None:
    """The preset that a file spells out, whose keys are taken from it; nothing where it does not."""
    found = [key for key in PRESET_KEYS if key in given]
    if not found:
        return None
    if preset is not None or "preset" in given:
        raise InputError(f"{where}: {found[0]}: found together with the name of a preset; leave one of them out")
    keys = [field.name for field in dataclasses.fields(Preset)]
    values = {key: given.pop(key) for key in keys if key in given}
    advice = "start from what `headsmith sweep --show-preset default` prints"
    written = structured(values | {"name": Path(where).name}, Preset, where, advice=advice)
    if "rungs" in values:
        _check_rungs(written.rungs, where)
    return written


def _check_rungs(rungs: list[int], where: str) -> None:
    """Raise an `InputError` unless every rung trains for more epochs than the one before."""
    if not rungs or rungs[0] < 1 or any(later <= earlier for earlier, later in pairwise(rungs)):
        raise InputError(
            f"{where}: rungs: {shown(rungs)} found, expected epochs that increase, such as [12, 36]; "
            "leave it out to train every setting to its end"
        )
    try:
        TrainConfig(epochs=rungs[-1])
    except InputError as error:
        raise InputError(f"{where}: rungs: {error}") from None


def _read(path: str | Path) -> Mapping[str, Any]:
    if not Path(path).exists():
        raise InputError(f"{path}: not found; expected a sweep file with settings such as `learning_rate: [.001, .01]`")
    values = read_yaml(path)
    if values is None:
        return {}
    if not isinstance(values, dict):
        hint = "; put a list of grids under `grids:`" if isinstance(values, list) and values else ""
        found = "an empty list" if values == [] else shown(values)
        raise InputError(f"{path}: {found} found, expected settings such as `loss: [softmax, softsort]`{hint}")
    return values


def _grids(given: GivenSettings, where: str) -> list[GivenSettings]:
    """The grids of a file, what is common to them filled in; their own settings win."""
    _check_keys(given, ("preset", "grids", "final_seeds"), where)
    grids = given.pop("grids", [{}])
    if not isinstance(grids, list | tuple) or not all(isinstance(grid, Mapping) for grid in grids):
        raise InputError(f"{where}: grids: {shown(grids)} found, expected a list of settings, each after a dash")
    if not grids:
        raise InputError(f"{where}: grids: an empty list found, so there is nothing to train; give one or more")
    for grid in grids:
        _check_keys(grid, ("name",), where)
        common = [key for key in COMMON if key in grid]
        if common:
            raise InputError(f"{where}: {common[0]}: is the same for the whole sweep; move it out of grids")
    return [{**given, **grid} for grid in grids]


def _check_keys(given: Mapping[str, Any], further: tuple[str, ...], where: str) -> None:
    known = (*HINTS, *further)
    for key in given:
        if key not in known:
            raise InputError(f"{where}: {no_setting(key, known)}")


def _check_size(grids: list[GivenSettings], where: str) -> None:
    """Raise an `InputError` for more heads than a sweep trains, before any is made."""
    heads = 0
    for grid in grids:
        heads += math.prod(len(values_of(key, value, where)) for key, value in grid.items() if key != "name")
    if heads > MOST_HEADS:
        raise InputError(f"{where}: asks for {heads:,} heads, expected at most {MOST_HEADS:,}; try fewer values")


def _check_names(grids: list[GivenSettings], where: str) -> None:
    """Raise an `InputError` for a name that hides a loss: plain cross-entropy would be no group of its own."""
    trained: dict[str, set[str]] = {}
    for grid in grids:
        name, losses = grid.get("name"), set(values_of("loss", grid.get("loss", TrainConfig.loss), where))
        if name is not None and (not isinstance(name, str) or printable(name) != name):
            raise InputError(f"{where}: name: {shown(name)} found, expected a word or a text on one line")
        for group, own in [(name, losses)] if name else [(loss, {loss}) for loss in losses]:
            called = f"{where}: name: {shown(group)}"
            if group in METHODS and group not in own:
                raise InputError(f"{called} is a loss that this grid does not train; choose another name")
            if BASELINE in own and len(own) > 1:
                raise InputError(f"{called} is of {_and(own)}; give {BASELINE} a grid of its own, to compare with")
            if trained.setdefault(group, own) != own:
                raise InputError(
                    f"{called} found for grids of {_and(trained[group])} and of {_and(own)}; give each its own name"
                )


def _and(losses: set[str]) -> str:
    return " and ".join(sorted(losses))


def _trials(grid: GivenSettings, preset: Preset | None, where: str) -> list[Trial]:
    name = grid.pop("name", None)
    axes = {key: values_of(key, value, where) for key, value in grid.items()}
    _seeds("seed", grid.get("seed"), where)
    if preset is None or "select" not in preset.settings:
        axes.setdefault("select", [SELECT])
    settings = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
    return [_trial(name, one, preset, where) for one in settings]


def _seeds(name: str, given: Any, where: str) -> list[int]:
    """Seeds, each once; none where nothing is given."""
    seeds = [] if given is None else values_of("seed", given, where, name)
    if wrong := [seed for seed in seeds if not 0 <= seed < 2**63]:
        raise InputError(f"{where}: {name}: {wrong[0]} found, expected 0 to {2**63 - 1}")
    repeated = [seed for seed, times in Counter(seeds).items() if times > 1]
    if repeated:
        raise InputError(
            f"{where}: {name}: {repeated[0]} found more than once, which would count one head twice; drop one"
        )
    return seeds


def _trial(name: str | None, settings: GivenSettings, preset: Preset | None, where: str) -> Trial:
    loss = settings.get("loss", TrainConfig.loss)
    if preset is not None and preset.name == Path(where).name and loss in METHODS and loss not in preset.losses:
        raise InputError(
            f"{where}: loss: {shown(loss)} found, but `losses` has no settings for it; add a line there, such as "
            f"`{loss}: {{learning_rate: {METHOD_DEFAULTS[loss].learning_rate}}}`"
        )
    with read_from(where, ("loss",)):
        base = preset.settings_of(loss) if preset is not None else {}
    if loss == "softmax":
        settings = {key: value for key, value in settings.items() if key != "p_k"}
    try:
        config = TrainConfig(**(base | settings))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return Trial(name or loss, without_unused(config))


def _check_common(trials: list[Trial], where: str) -> None:
    """One criterion and one device for all, so that heads can be compared."""
    for key in COMMON:
        found = list(dict.fromkeys(getattr(trial.config, key) for trial in trials))
        if len(found) > 1:
            raise InputError(
                f"{where}: {key}: {shown(found[0])} and {shown(found[1])} found, expected one for the whole sweep"
            )


def check_criterion(trials: Sequence[Trial], where: str) -> None:
    """Refuse the criterion ``p_k`` where it is not the same for all heads.

    Args:
        trials: The heads, every default filled in: those of ``p_k`` depend on the loss and the number of classes.
        where: The file, for messages.

    Raises:
        InputError: Heads would be scored by different weights.
    """
    first = trials[0].config
    other = next((one.config for one in trials if one.config.p_k != first.p_k), None)
    if first.select == "p_k" and other is not None:
        found = " and ".join(f"{list(one.p_k or ())} for {one.loss}" for one in (first, other))
        raise InputError(
            f"{where}: select: p_k found, which is {found}, so that their scores cannot be compared; expected top1, "
            "top5, or weights of top-1, top-2, ... such as [.5, 0, 0, 0, .5]"
        )


def spelt_out(config: TrainConfig) -> JsonObject:
    """Settings as JSON values, in the order of the fields."""
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in dataclasses.asdict(config).items()
    }
