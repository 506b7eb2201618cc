"""What a bundle carries so that it can be verified elsewhere: held-out inputs, and what was answered to them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self, TypedDict

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError, safe_open

from ...core.errors import DamagedFileError, InputError
from ...core.files import parse_json, regular_file
from ...core.safetensors_bytes import in_order
from ...core.typed_json import structured
from ..held_out import Batch
from ..metadata import AGAIN, Metadata
from ..runtime import Array

REFERENCE = "reference.safetensors"
PYTHON = "python"
ROWS, STORED, STORED_BYTES = 256, 8, 8_000_000
METADATA, BY_ID = "headsmith.reference", "headsmith"


class _Rows(TypedDict):
    ids: list[str]
    digests: list[str]


@dataclass(frozen=True)
class Reference:
    """Answers to N held-out inputs. Several inputs may share an id.

    Attributes:
        ids: N ids.
        digests: N `digest`s of the inputs.
        answers: Logits ``(N, C)`` float32: those of the Python module as ``python``, those of each file in lower
            precision by its name.
        inputs: Some of the inputs themselves, by row: pixels uint8 ``(H, W, 3)`` or features ``(D,)``.
        made_up: Further inputs ``(M, ...)`` that nobody took a picture of, see `made_up_inputs`; none in a bundle that
            has none.
        made_up_answers: Logits ``(M, C)`` to these, one by one, as `answers`.
        metadata: What the exported files said of themselves; ``None`` in a bundle that does not know it.
    """

    ids: list[str]
    digests: list[str]
    answers: dict[str, Array]
    inputs: dict[int, Array]
    made_up: Array
    made_up_answers: dict[str, Array]
    metadata: Metadata | None

    @cached_property
    def rows(self) -> dict[tuple[str, str], int]:
        """The row of every input, by its id and digest."""
        return {key: row for row, key in enumerate(zip(self.ids, self.digests, strict=True))}

    def logits(self, name: str, rows: Sequence[int]) -> Array:
        """What a file in lower precision answered to these inputs, or the Python module for any other file."""
        return self.answers.get(name, self.answers[PYTHON])[rows]

    def made_up_logits(self, name: str) -> Array:
        """The same to the made-up inputs."""
        found: Array = self.made_up_answers.get(name, self.made_up_answers[PYTHON])
        return found

    def largest(self, name: str) -> float:
        """The largest absolute logit among the answers of `logits`; 0 where there is none."""
        return float(np.abs(self.answers.get(name, self.answers[PYTHON])).max(initial=0.0))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `Recorder.save` wrote into a bundle.

        Raises:
            InputError: The bundle has none, or one that was kept by id although several inputs share one.
            DamagedFileError: The file is damaged.
        """
        path = folder / REFERENCE
        if not path.exists():
            raise InputError(f"{path}: not found, so there is nothing to compare with; export the bundle again")
        regular_file(path)
        try:
            with safe_open(path, framework="np") as file:
                about = file.metadata() or {}
                ids, digests, row_of = _rows(about, str(path))
                metadata = Metadata.from_strings(about, str(path)) if METADATA in about else None
            tensors = safetensors.numpy.load_file(path)
            parts: dict[str, dict[str, Array]] = {"answers": {}, "inputs": {}, "made_up": {}}
            for name, tensor in tensors.items():
                kind, _, key = name.partition(":")
                parts[kind][key] = tensor
            inputs = {row_of[key]: values for key, values in parts["inputs"].items()}
            count = len(parts["answers"][PYTHON])
            made_up = parts["made_up"] or {"inputs": np.empty(0), PYTHON: np.empty(0)}
        except InputError:
            raise
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise DamagedFileError(f"{path}: damaged ({error}); export the bundle again") from None
        if len(ids) != count:
            raise InputError(
                f"{path}: {count} answers to inputs of {len(ids)} ids, which an earlier headsmith told apart by id "
                "alone; export the bundle again"
            )
        return cls(ids, digests, parts["answers"], inputs, made_up.pop("inputs"), made_up, metadata)


def _rows(metadata: Mapping[str, str], where: str) -> tuple[list[str], list[str], dict[str, int]]:
    """Ids and digests of the rows, and the row of each name that an input is stored under."""
    if METADATA in metadata:
        known = structured(parse_json(metadata[METADATA]), _Rows, f"{where}: {METADATA}", advice=AGAIN)
        return known["ids"], known["digests"], {str(row): row for row in range(len(known["ids"]))}
    # As it was written before several inputs could share an id.
    by_id = structured(parse_json(metadata[BY_ID]), dict[str, str], f"{where}: {BY_ID}", advice=AGAIN)
    return [*by_id], [*by_id.values()], {sample: row for row, sample in enumerate(by_id)}


class Recorder:
    """Picks the reference's inputs, evenly spread, while all held-out inputs pass by.

    Args:
        total: How many will pass.
    """

    def __init__(self, total: int) -> None:
        self._seen = 0
        self._rows = set(np.linspace(0, total - 1, min(ROWS, total)).round().astype(int).tolist())
        self._ids: list[str] = []
        self._digests: list[str] = []
        self._answers: dict[str, list[Array]] = {}
        self._inputs: dict[int, Array] = {}
        self._made_up: dict[str, Array] = {}
        self._every = -(-len(self._rows) // STORED)

    def add(self, batch: Batch, logits: Mapping[str, Array]) -> None:
        """Look at a batch and the logits ``(N, C)`` that were answered to it, by who answered."""
        picked = [row for row in range(len(batch.ids)) if self._seen + row in self._rows]
        self._seen += len(batch.ids)
        for row in picked:
            values, place = batch.inputs[row], len(self._ids)
            stored = sum(array.nbytes for array in self._inputs.values()) + values.nbytes
            if not self._inputs or (place % self._every == 0 and stored <= STORED_BYTES):
                self._inputs[place] = values.copy()
            self._ids.append(batch.ids[row])
            self._digests.append(digest(values))
        for name, values in logits.items():
            self._answers.setdefault(name, []).append(values[picked])

    def add_made_up(self, inputs: Array, logits: Mapping[str, Array]) -> None:
        """Keep inputs that were made up, and what was answered to them one by one."""
        stored = inputs[: STORED_BYTES // max(1, inputs[:1].nbytes)]
        self._made_up = {"inputs": stored} | {name: values[: len(stored)] for name, values in logits.items()}

    def save(self, path: Path, metadata: Metadata) -> None:
        """Write the reference as safetensors, with what the exported files must say of themselves."""
        tensors = {f"answers:{name}": np.concatenate(parts) for name, parts in self._answers.items()}
        tensors |= {f"inputs:{row}": np.ascontiguousarray(values) for row, values in self._inputs.items()}
        tensors |= {f"made_up:{name}": np.ascontiguousarray(values) for name, values in self._made_up.items()}
        rows = json.dumps({"ids": self._ids, "digests": self._digests})
        path.write_bytes(in_order(safetensors.numpy.save(tensors, {**metadata.to_strings(), METADATA: rows})))


def digest(values: Array) -> str:
    """SHA-256 of an input's numbers and shape, in hexadecimal."""
    return hashlib.sha256(f"{values.dtype} {values.shape} ".encode() + values.tobytes()).hexdigest()
