"""The writer and reader of ``.pt2``, torch's exported programs: the successor of TorchScript.

torch's own reader runs source of the file, evaluates expressions, looks functions up by name and falls back to pickle,
all as the file says. So `checked_program` reads a file first, and gives torch a copy with what
`headsmith.export.formats.pt2_schema` lets through: tensors as raw bytes, operators by name, and whole-number
arithmetic on sizes.
"""

import json
import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.export.passes import move_to_device_pass
from torch.export.pt2_archive._package import load_pt2

from ...core.archive import Archive, checked_archive
from ...core.errors import DamagedFileError
from ...core.json_values import JsonObject
from ...core.printable import printable
from ...models.execution_provider import ExecutionProvider
from ...models.runtime_settings import RuntimeSettings
from ..classifier import Classifier, Graph
from ..errors import UnsupportedOperatorError, cause
from ..metadata import KEYS, Metadata
from ..runtime import Array, Model, Outputs
from .inlining import inline
from .pt2_schema import UnknownProgramError, check_program, check_weights
from .torch_device import answered, on_device, torch_device

NOTES = ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "from_node", "custom")
AGAIN = "export it again"
PROGRAM, WEIGHTS = (
    "models/model.json",
    ("data/weights/model_weights_config.json", "data/constants/model_constants_config.json"),
)
MEMBERS = re.compile(
    r"data/weights/(weight_\d+|model_weights_config\.json)|data/constants/(tensor_\d+|model_constants_config\.json)"
    r"|data/sample_inputs/model\.pt|models/model\.json|extra/\w+|\.data/(version|serialization_id)|byteorder"
    r"|archive_format|archive_version|\.format_version|\.storage_alignment",
    re.ASCII,
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
        inline(program)
    except (RuntimeError, ValueError) as error:
        reason = str(error).strip().split("\n", maxsplit=1)[0]
        raise UnsupportedOperatorError(f"torch.export failed: {reason}") from error
    for node in program.graph.nodes:
        for note in NOTES:
            node.meta.pop(note, None)
    program.example_inputs = None
    program._guards_code = []  # Python source, which a reader would run
    torch.export.save(program, path, extra_files=metadata.to_strings())


@contextmanager
def checked_program(path: Path) -> Iterator[Path]:
    """A copy of a file that holds nothing but what was read and checked here, without guards, for torch to open.

    Raises:
        DamagedFileError: The file is damaged, or asks for more than tensors, operators of classifiers and arithmetic
            on sizes.
    """
    archive = checked_archive(path, AGAIN)
    try:
        strange = [name for name in archive.members if not MEMBERS.fullmatch(name)]
        strange += [name for name, member in archive.members.items() if name.endswith(".pt") and member.size]
        if strange:
            raise UnknownProgramError(strange[0])
        parts = {name: json.loads(archive.read(name).decode()) for name in (PROGRAM, *WEIGHTS)}
        check_program(parts[PROGRAM])
        for name in WEIGHTS:
            check_weights(parts[name])
            _check_sizes(archive, name, parts[name]["config"])
    except UnknownProgramError as error:
        raise DamagedFileError(
            f"{path}: holds {printable(str(error))[:80]!r}, which could run code or write files; only programs that "
            "headsmith wrote are opened"
        ) from None
    except (ValueError, KeyError, RecursionError) as error:
        raise DamagedFileError(
            f"{path}: damaged or not an exported program ({printable(cause(error))}); export it again"
        ) from None
    parts[PROGRAM]["guards_code"] = []
    with archive.rebuilt(instead={name: json.dumps(part).encode() for name, part in parts.items()}) as copy:
        yield copy


def _check_sizes(archive: Archive, name: str, config: JsonObject) -> None:
    """No tensor may be larger than the bytes that the file has for it: torch would make one of an empty member."""
    for entry in config.values():
        member = archive.members[f"{name.rpartition('/')[0]}/{entry['path_name']}"]
        sizes = [size.get("as_int", -1) for size in entry["tensor_meta"]["sizes"]]
        if min(sizes, default=0) < 0 or (math.prod(sizes) > member.size):
            raise UnknownProgramError(f"{entry['path_name']} of {sizes}")


class ExportedProgramModel(Model):
    """A ``.pt2`` file under torch."""

    def __init__(self, path: Path, provider: ExecutionProvider, threads: int) -> None:
        self.path, self.provider = path, provider
        self._device = torch_device(provider)
        start = time.perf_counter()
        with checked_program(path) as copy:
            try:
                contents = load_pt2(str(copy))
                program = contents.exported_programs["model"]
                self._module = move_to_device_pass(program, self._device).module()
            except Exception as error:  # noqa: BLE001 - whatever torch stumbles over in a damaged file
                raise DamagedFileError(
                    f"{path}: torch cannot open it ({printable(cause(error))}); export it again"
                ) from None
        self.load_seconds = time.perf_counter() - start
        extra = {key: text for key, text in contents.extra_files.items() if key in KEYS}
        self.metadata = Metadata.from_strings(extra, str(path))
        torch.set_num_threads(threads)
        self.settings = RuntimeSettings(f"torch {torch.__version__}", str(provider), threads)

    @torch.inference_mode()
    def answer(self, fed: Array) -> Outputs:
        """Run the program."""
        return answered(self._module, on_device(fed, self._device), self.path)
