"""The settings of a training run: every default in one place, every value spelt out in the run folder."""

import dataclasses
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import yaml

from ..models.errors import InputError, near
from ..models.files import new_file

# Found on the glyph set (1,000 classes, 16 epochs, batch 512, validation accuracy) among 1e-3, 3e-3, 1e-2 and 3e-2.
LEARNING_RATES = {
    "softmax": 3e-3,
    "neuralsort": 1e-2,
    "softsort": 1e-2,
    "sinkhorn": 1e-2,
    "odd_even": 3e-3,
    "bitonic": 1e-2,
    "splitter_selection": 3e-3,
}


@dataclass(frozen=True)
class TrainConfig:
    """What a head is trained with.

    Attributes:
        loss: ``softmax`` (plain cross-entropy), or the relaxation of a top-k cross-entropy: one of
            `headsmith.trainer.losses.METHODS`.
        p_k: The weights of top-1, top-2, ...; ``None`` takes the loss's default.
        m: How many of the highest scores enter the relaxation; ``None`` keeps all classes.
        inverse_temperature: Sharpness of the relaxation; ``None`` takes the loss's default.
        head: The kind of head.
        epochs: Passes over the training split, at the most.
        batch_size: Rows a step.
        learning_rate: Adam's step size; ``None`` takes the loss's default (`LEARNING_RATES`).
        patience: Stop after this many epochs without a better validation accuracy.
        seed: Fixes the order of the rows.
        device: ``auto``, ``cpu`` or ``cuda``.
    """

    loss: str = "softmax"
    p_k: tuple[float, ...] | None = None
    m: int | None = 16
    inverse_temperature: float | None = None
    head: str = "linear"
    epochs: int = 100
    batch_size: int = 512
    learning_rate: float | None = None
    patience: int = 10
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience", "learning_rate"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"--{name.replace('_', '-')}: {value} found, expected a number above 0")
        if not 0 <= self.seed < 2**63:
            raise InputError(f"--seed: {self.seed} found, expected 0 to {2**63 - 1}")

    @property
    def step_size(self) -> float:
        """Adam's step size: the one that was given, else the loss's own."""
        return LEARNING_RATES[self.loss] if self.learning_rate is None else self.learning_rate

    def save(self, path: str | Path) -> None:
        """Write as YAML, atomically."""
        values = {name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(self).items()}
        with new_file(path) as temporary:
            temporary.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote.

        Raises:
            InputError: The file is missing, is not YAML, or has an unknown key.
        """
        try:
            values: Any = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"{path}: not found; a run folder holds it") from None
        except yaml.YAMLError as error:
            raise InputError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
        known = [field.name for field in fields(cls)]
        if not isinstance(values, dict):
            raise InputError(f"{path}: holds {type(values).__name__}, expected settings such as `loss: softmax`")
        for name in values:
            if name not in known:
                raise InputError(f"{path}: {name!r} is no setting{near(name, known)}; expected some of {known}")
        if values.get("p_k") is not None:
            values["p_k"] = tuple(values["p_k"])
        return cls(**values)
