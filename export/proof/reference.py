"""What a bundle carries so that it can be verified elsewhere: held-out inputs, and what was answered to them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError, safe_open

from ...core.errors import DamagedFileError, InputError
from ..runtime import Array
from .held_out import Batch

REFERENCE = "reference.safetensors"
PYTHON = "python"
ROWS, STORED, STORED_BYTES = 256, 8, 8_000_000
METADATA = "headsmith"


@dataclass(frozen=True)
class Reference:
    """Answers to N held-out inputs.

    Attributes:
        digests: `digest` of every input, by its id.
        answers: Logits ``(N, C)`` float32: those of the Python module as ``python``, those of each file in lower
            precision by its name.
        inputs: Some of the inputs themselves, by id: pixels uint8 ``(H, W, 3)`` or features ``(D,)``.
    """

    digests: dict[str, str]
    answers: dict[str, Array]
    inputs: dict[str, Array]

    def logits(self, name: str, ids: Sequence[str]) -> Array:
        """What a file in lower precision answered to these inputs, or the Python module for any other file."""
        rows = {sample: row for row, sample in enumerate(self.digests)}
        return self.answers.get(name, self.answers[PYTHON])[[rows[sample] for sample in ids]]

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `Recorder.save` wrote into a bundle.

        Raises:
            InputError: The bundle has none.
            DamagedFileError: The file is damaged.
        """
        path = folder / REFERENCE
        if not path.is_file():
            raise InputError(f"{path}: not found, so there is nothing to compare with; export the bundle again")
        try:
            with safe_open(path, framework="np") as file:
                digests: dict[str, str] = json.loads(file.metadata()[METADATA])
            tensors = safetensors.numpy.load_file(path)
        except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise DamagedFileError(f"{path}: damaged ({error}); export the bundle again") from None
        parts: dict[str, dict[str, Array]] = {"answers": {}, "inputs": {}}
        for name, tensor in tensors.items():
            kind, _, key = name.partition(":")
            parts[kind][key] = tensor
        return cls(digests, **parts)


class Recorder:
    """Picks the reference's inputs, evenly spread, while all held-out inputs pass by.

    Args:
        total: How many will pass.
    """

    def __init__(self, total: int) -> None:
        self._seen = 0
        self._rows = set(np.linspace(0, total - 1, min(ROWS, total)).round().astype(int).tolist())
        self._digests: dict[str, str] = {}
        self._answers: dict[str, list[Array]] = {}
        self._inputs: dict[str, Array] = {}
        self._every = -(-len(self._rows) // STORED)

    def add(self, batch: Batch, logits: Mapping[str, Array]) -> None:
        """Look at a batch and the logits ``(N, C)`` that were answered to it, by who answered."""
        picked = [row for row in range(len(batch.ids)) if self._seen + row in self._rows]
        self._seen += len(batch.ids)
        for row in picked:
            values = batch.inputs[row]
            stored = sum(array.nbytes for array in self._inputs.values()) + values.nbytes
            if not self._inputs or (len(self._digests) % self._every == 0 and stored <= STORED_BYTES):
                self._inputs[batch.ids[row]] = values.copy()
            self._digests[batch.ids[row]] = digest(values)
        for name, values in logits.items():
            self._answers.setdefault(name, []).append(values[picked])

    def save(self, path: Path) -> None:
        """Write the reference as safetensors."""
        tensors = {f"answers:{name}": np.concatenate(parts) for name, parts in self._answers.items()}
        tensors |= {f"inputs:{name}": np.ascontiguousarray(values) for name, values in self._inputs.items()}
        path.write_bytes(safetensors.numpy.save(tensors, {METADATA: json.dumps(self._digests)}))


def digest(values: Array) -> str:
    """SHA-256 of an input's numbers and shape, in hexadecimal."""
    return hashlib.sha256(f"{values.dtype} {values.shape} ".encode() + values.tobytes()).hexdigest()
