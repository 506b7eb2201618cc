"""An unfinished fit, as one file that is there whole or not at all."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypedDict, cast

import torch
from torch import Tensor

from ...core.errors import DamagedFileError, InputError
from ...core.files import new_file
from ...core.json_values import JsonObject
from ...core.torch_file import PicklesError, load_tensors
from ...core.typed_json import structured
from ..run_record import InitializationRecord, upgraded_initialization
from .best_epochs import SelectionState

CHECKPOINT = "checkpoint.pt"
# A checkpoint may cost one part in this many of the time since the last one.
_SHARE = 20
AGAIN = "pass `overwrite` to start anew"


@dataclass(frozen=True)
class CheckpointFolder:
    """Where an unfinished fit is kept.

    Attributes:
        folder: The folder.
        identity: Fingerprints that a checkpoint must share besides the settings.
        overwrite: Whether one that is damaged or of another fit counts for nothing.
    """

    folder: Path
    identity: Mapping[str, Any] = field(default_factory=dict)
    overwrite: bool = False


class FitState(TypedDict):
    """An unfinished fit.

    Attributes:
        epochs: What `Epochs.save` gave: tensors and plain values.
        best_state: The parameters of each head's best epoch, by name.
        selection: Which epochs those are.
        done: Epochs that ended.
        seconds: What they took.
    """

    epochs: Mapping[str, Any]
    best_state: dict[str, Tensor]
    selection: SelectionState
    done: int
    seconds: float


class Checkpoint:
    """Where an unfinished fit is kept.

    Args:
        keep: Its folder.
        identity: What must be equal for a fit to go on: settings and fingerprints, as JSON values.
    """

    def __init__(self, keep: CheckpointFolder, identity: JsonObject) -> None:
        self.path, self.identity, self.overwrite = keep.folder / CHECKPOINT, identity, keep.overwrite
        self._cost, self._saved = 0.0, time.perf_counter()

    def load(self) -> FitState | None:
        """What was saved last, on the CPU, or None.

        Raises:
            InputError: The file is damaged, or of a fit with other settings.
        """
        if not self.path.is_file():
            return None
        try:
            return self._read()
        except InputError:
            if self.overwrite:
                return None
            raise

    def _read(self) -> FitState:
        try:
            found = load_tensors(self.path, AGAIN)
            identity, state = dict(found["identity"]), dict(found["state"])
            if "began" in identity:  # so called in older files
                identity["initialization"] = _initialization(identity.pop("began"), self.path)
        except PicklesError as error:
            raise DamagedFileError(f"{error}; {AGAIN}") from None
        except InputError:
            raise
        except (KeyError, TypeError, ValueError):
            raise DamagedFileError(f"{self.path}: damaged (no checkpoint of a fit); {AGAIN}") from None
        if not _is_finite(state.get("epochs")) or not _is_finite(state.get("best_state")):
            raise DamagedFileError(f"{self.path}: damaged (NaN or infinite weights); {AGAIN}")
        changed = [name for name in self.identity if identity.get(name) != self.identity[name]]
        if changed:
            values = ", ".join(f"{name} {identity.get(name)!r}, now {self.identity[name]!r}" for name in changed)
            raise InputError(
                f"{self.path.parent}: an unfinished run with other settings ({values}); finish it with those, choose "
                "another `out`, or pass `overwrite` to start anew"
            )
        return cast(FitState, state)

    def save(self, state: Callable[[], FitState]) -> None:
        """Save, unless the last one is so recent that saving would take more than a twentieth of the time."""
        start = time.perf_counter()
        if start - self._saved < _SHARE * self._cost:
            return
        with new_file(self.path) as temporary:
            try:
                torch.save({"identity": self.identity, "state": state()}, temporary)
            except RuntimeError as error:  # torch's writer says so where the system refuses to write
                raise OSError(f"{self.path}: the checkpoint cannot be written; is the disk full?") from error
        self._saved = time.perf_counter()
        self._cost = self._saved - start


def _initialization(began: Any, path: Path) -> JsonObject:
    return asdict(structured(upgraded_initialization(began), InitializationRecord, str(path), advice=AGAIN))


def _is_finite(state: Any) -> bool:
    """Whether no tensor in it, however deep, holds NaN or infinity."""
    if isinstance(state, torch.Tensor):
        return bool(state.isfinite().all())
    inner = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else ()
    return all(map(_is_finite, inner))
