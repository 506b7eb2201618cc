"""Settings by name, published ones and our own: YAML files beside this module, one a preset."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ...core.errors import InputError, near
from ...core.printable import shown
from ...core.typed_json import structured
from ...core.yaml_file import read_yaml
from ..few_classes import PresetWeights
from ..settings_file import GivenSettings
from ..unused_settings import read_by_loss

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Preset:
    """Settings that somebody published, or that were found to be good.

    Attributes:
        name: Such as ``paper/imagenet1k``.
        settings: What all its losses share, by the fields of `TrainConfig`.
        losses: By loss, what is that loss's own.
        grids: What a sweep trains that names no loss, as in a sweep file.
        source: Where the settings come from; a user need not say it.
        note: What the preset carries, and what it does not; as little.
        rungs: Epochs of the rungs of that sweep, see `headsmith.sweep`; one rung, to the end, where there are none.
        final_seeds: Those of that sweep.
        unit_features: Whether rates are for features whose root mean square is 1, and follow the size of others.
    """

    name: str
    settings: GivenSettings
    losses: dict[str, GivenSettings]
    grids: list[GivenSettings]
    source: str = ""
    note: str = ""
    rungs: list[int] = field(default_factory=list)
    final_seeds: list[int] = field(default_factory=list)
    unit_features: bool = False

    def settings_of(self, loss: str) -> GivenSettings:
        """The settings of one loss, by the fields of `TrainConfig`.

        Raises:
            InputError: The source has no settings for this loss.
        """
        if loss not in self.losses:
            raise InputError(
                f"--loss: {shown(loss)} found, but preset {self.name} has no settings for it, expected one of "
                f"{', '.join(self.losses)}{near(str(loss), self.losses)}"
            )
        values: GivenSettings = {"loss": loss} | self.settings | self.losses[loss]
        weights = PresetWeights if self.unit_features else tuple
        return {key: weights(value) if isinstance(value, list) else value for key, value in values.items()}


def preset(name: str, loss: str) -> GivenSettings:
    """The settings of a preset for one loss, as keywords of `headsmith.train`; what the loss does not read is left out.

    ``train(features, out=..., **(preset("paper/imagenet1k", "bitonic") | {"m": 32}))`` trains with them, but for m.

    Args:
        name: One of `preset_names`.
        loss: The loss to train.

    Raises:
        InputError: No such preset, or one that has no settings for this loss.
    """
    return read_by_loss(load_preset(name).settings_of(loss))


def preset_text(name: str, *, asked_by: str = "--preset") -> str:
    """The file of a preset, which is a sweep file too.

    Args:
        name: One of `preset_names`.
        asked_by: The option that named it, for errors.

    Raises:
        InputError: No such preset.
    """
    return _file(name, asked_by).read_text(encoding="utf-8")


def _file(name: str, asked_by: str = "--preset") -> Path:
    known = preset_names()
    if name not in known:
        raise InputError(f"{asked_by}: {shown(name)} found, expected one of {', '.join(known)}{near(str(name), known)}")
    return _FOLDER / f"{name}.yaml"


def preset_names() -> list[str]:
    """The names of all presets."""
    return sorted(str(path.relative_to(_FOLDER).with_suffix("").as_posix()) for path in _FOLDER.rglob("*.yaml"))


@cache
def load_preset(name: str) -> Preset:
    """A preset by its name.

    Raises:
        InputError: No such preset.
    """
    path = _file(name)
    return structured({"name": name} | read_yaml(path), Preset, str(path), advice="install headsmith again")
