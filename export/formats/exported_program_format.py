"""The writer and reader of ``.pt2``, torch's exported programs: the successor of TorchScript.

torch's own reader evaluates expressions, looks functions up by name and falls back to pickle, all as the file says. So
`check_exported_program` reads a file first, and lets through only what `write_exported_program` writes: tensors as raw
bytes, ATen operators, and whole-number arithmetic on sizes.
"""

import json
import re
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.export.passes import move_to_device_pass

from ...core.errors import DamagedFileError
from ..classifier import Classifier, Graph
from ..errors import UnsupportedOperatorError, cause
from ..metadata import KEYS, Metadata
from ..runtime import Array, Model, Outputs
from .torch_device import torch_device

NOTES = ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "from_node", "custom")
MEMBERS = re.compile(
    r"[^/]+/(data/weights/(weight_\d+|model_weights_config\.json)|data/constants/(tensor_\d+|model_constants_config\.json)"
    r"|data/sample_inputs/model\.pt|models/model\.json|extra/\w+|\.data/(version|serialization_id)|byteorder"
    r"|archive_format|archive_version)"
)
OPERATORS = re.compile(
    r"torch\.ops\.aten\.\w+\.\w+|torch\.sym_\w+"
    r"|_operator\.(getitem|add|sub|mul|floordiv|truediv|mod|neg|pow|abs|lt|le|eq|ne|ge|gt)"
)
SIZES = re.compile(
    r"(Symbol\('[su]\d+'(, \w+=(True|False))*\)|[su]\d+|-?\d+|Integer|Add|Mul|Pow|Rational|FloorDiv|CleanDiv|Mod"
    r"|PythonMod|Abs|Max|Min|[-+*/(), ])*"
)


def write_exported_program(classifier: Classifier, metadata: Metadata, path: Path) -> None:
    """Write a ``.pt2`` file with a free batch axis, the metadata as its extra files.

    It answers with the tuple of `Classifier.outputs`. Of the machine that exported nothing is in it.

    Raises:
        UnsupportedOperatorError: A network that `torch.export` cannot capture.
    """
    try:
        program = torch.export.export(
            Graph(classifier), (classifier.example(),), dynamic_shapes=(classifier.dynamic_axes(),)
        )
    except (RuntimeError, ValueError) as error:
        reason = str(error).strip().split("\n", maxsplit=1)[0]
        raise UnsupportedOperatorError(f"torch.export failed: {reason}") from error
    for node in program.graph.nodes:
        for note in NOTES:
            node.meta.pop(note, None)
    program.example_inputs = None
    torch.export.save(program, path, extra_files=metadata.to_strings())


def check_exported_program(path: Path) -> None:
    """Raise a `DamagedFileError` unless a file is whole and asks for nothing but tensors, ATen and arithmetic."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
            if damaged is not None:
                raise zipfile.BadZipFile(damaged)
            names = archive.namelist()
            strange = [name for name in names if not MEMBERS.fullmatch(name) or names.count(name) > 1]
            strange += [name for name in names if name.endswith(".pt") and archive.getinfo(name).file_size]
            parts = [json.loads(archive.read(name)) for name in names if name.endswith(".json")]
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, zlib.error, NotImplementedError) as error:
        raise DamagedFileError(
            f"{path}: damaged or not an exported program ({cause(error)}); export it again"
        ) from None
    strange += [what for part in parts for what in _strange(part)]
    if strange:
        raise DamagedFileError(
            f"{path}: holds {strange[0][:80]!r}, which could run code; only programs that headsmith wrote are opened"
        )


def _strange(value: Any) -> Iterator[str]:
    """What in the JSON of a program is neither data, nor ATen, nor arithmetic on sizes."""
    if isinstance(value, list):
        for entry in value:
            yield from _strange(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            if key in ("use_pickle", "metadata") and entry:
                yield f"{key}: {entry}"
            elif key == "target" and isinstance(entry, str) and not OPERATORS.fullmatch(entry):
                yield entry
            elif key == "expr_str" and not SIZES.fullmatch(str(entry)):
                yield str(entry)
            elif key == "range_constraints":
                yield from (name for name in entry if not SIZES.fullmatch(name))
            else:
                yield from _strange(entry)


class ExportedProgramModel(Model):
    """A ``.pt2`` file under torch."""

    def __init__(self, path: Path, provider: str, threads: int) -> None:
        self.path, self.provider = path, provider
        self._device = torch_device(provider)
        start = time.perf_counter()
        check_exported_program(path)
        extra = dict.fromkeys(KEYS, "")
        try:
            program = torch.export.load(path, extra_files=extra)
        except (RuntimeError, ValueError, KeyError, AssertionError) as error:
            raise DamagedFileError(f"{path}: torch cannot open it ({cause(error)}); export it again") from None
        self._module = move_to_device_pass(program, self._device).module()
        self.load_seconds = time.perf_counter() - start
        self.metadata = Metadata.from_strings({key: text for key, text in extra.items() if text}, str(path))
        torch.set_num_threads(threads)
        self.settings = {"runtime": f"torch {torch.__version__}", "provider": provider, "threads": threads}

    @torch.inference_mode()
    def answer(self, fed: Array) -> Outputs:
        """Run the program."""
        return Outputs.of(self._module(torch.from_numpy(fed).to(self._device)))
