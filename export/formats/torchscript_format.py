"""The TorchScript writer and reader.

TorchScript is deprecated in torch: tracing, saving and loading each warn. It is kept, traced (never scripted), for
libtorch clients. `quiet_torchscript` is the one place where that warning is handled.
"""

import contextlib
import io
import re
import time
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import torch

from ...core.archive import checked_archive
from ...core.errors import DamagedFileError, InputError
from ...core.printable import printable
from ...models.execution_provider import ExecutionProvider
from ...models.runtime_settings import RuntimeSettings
from ..classifier import Classifier, Graph
from ..errors import cause
from ..metadata import KEYS, Metadata
from ..runtime import Array, Model, Outputs
from .torch_device import answered, on_device, torch_device
from .torchscript_check import DEBUG, UnsafeScriptError, check_graph, check_members

DEPRECATION = "TorchScript is deprecated in torch; prefer the ONNX file where the client allows it."
# A number that counts the classes of this process.
_MANGLED = re.compile(rb"___torch_mangle_\d+")


@contextlib.contextmanager
def quiet_torchscript() -> Iterator[None]:
    """Do not repeat torch's own deprecation of TorchScript; every other warning comes through."""
    with warnings.catch_warnings():
        for category in (DeprecationWarning, FutureWarning):  # which one depends on torch's version
            warnings.filterwarnings("ignore", message=r".*torch\.jit\.", category=category)
        yield


def write_torchscript(classifier: Classifier, metadata: Metadata, path: Path) -> None:
    """Write a traced, frozen TorchScript file with the metadata as extra files. TorchScript is deprecated in torch.

    Traced with a batch of 2; it takes any batch. Its output is the tuple (logits, topk_scores, topk_indices). Tracing
    makes constants of what Python reads from a tensor, and warns; networks read their fixed height and width so. That
    the batch is not among them is proved afterwards, by running the file at several sizes of batches.
    """
    with quiet_torchscript(), torch.inference_mode():
        warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)  # type: ignore[attr-defined]
        traced: torch.jit.ScriptModule = torch.jit.trace(Graph(classifier), classifier.example(), check_trace=False)
        saved = io.BytesIO()
        torch.jit.save(torch.jit.freeze(traced), saved, _extra_files=metadata.to_strings())
    _write_archive(saved, path)


def read_torchscript(path: Path, device: torch.device) -> tuple[torch.jit.ScriptModule, dict[str, str]]:
    """Open a TorchScript file, of which nothing runs; see `headsmith.export.formats.torchscript_check`.

    Returns:
        The module on ``device``, and its metadata as strings (empty where the file carries none).

    Raises:
        DamagedFileError: The file is damaged, no TorchScript, or holds what no classifier of ours does.
    """
    archive = checked_archive(path, "export it again")
    try:
        check_members(archive)
        debug = [name for name in archive.members if DEBUG.fullmatch(name)]
        extra: dict[str, str | bytes] = dict.fromkeys(KEYS, "")
        with archive.rebuilt(without=debug) as copy, quiet_torchscript():
            module: torch.jit.ScriptModule = torch.jit.load(str(copy), map_location=device, _extra_files=extra)
        check_graph(module)
        return module, {key: value.decode() for key, value in extra.items() if isinstance(value, bytes)}
    except UnsafeScriptError as error:
        raise DamagedFileError(
            f"{path}: holds {printable(str(error))[:80]}, which no module of `headsmith export` does and which could "
            "run code or write files; only those are opened"
        ) from None
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever torch and pickletools stumble over in a damaged file
        raise DamagedFileError(
            f"{path}: damaged or not TorchScript ({printable(cause(error))}); export it again"
        ) from None


class TorchScriptModel(Model):
    """A file under libtorch."""

    def __init__(self, path: Path, provider: ExecutionProvider, threads: int) -> None:
        self.path, self.provider = path, provider
        self._device = torch_device(provider)
        start = time.perf_counter()
        self._module, strings = read_torchscript(path, self._device)
        self.load_seconds = time.perf_counter() - start
        self.metadata = Metadata.from_strings(strings, str(path))
        torch.set_num_threads(threads)
        self.settings = RuntimeSettings(f"torch {torch.__version__}", str(provider), threads)

    def feed(self, inputs: Array) -> Array:
        """As declared; float pixels stay channels-last in memory, which libtorch computes a third faster on a CPU."""
        if self.metadata.input_format == "float-nchw":
            return inputs.astype(np.float32).transpose(0, 3, 1, 2)
        return super().feed(inputs)

    @torch.inference_mode()
    def answer(self, fed: Array) -> Outputs:
        """Run the module."""
        return answered(self._module, on_device(fed, self._device), self.path)


def _write_archive(saved: IO[bytes], path: Path) -> None:
    """Write what `torch.jit.save` saved: bytes that depend on nothing but the network, members by their names.

    Left out are the places in Python that it was traced from (``.debug_pkl``), which only a stack trace would show.
    Class names lose their counter; it stands in code and in opcodes that end with the line, so that no length changes.

    Args:
        saved: The archive of one frozen module, which is one class.
        path: Where to write. The name of the folder inside is that of the file.
    """
    with zipfile.ZipFile(saved) as archive:
        members = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
    writer = torch._C.PyTorchFileWriter(str(path))
    # torch writes the number elsewhere where an operator asks for a later one, as GELU does
    writer.set_min_version(int(members[".data/version" if ".data/version" in members else "version"]))
    for name in sorted(members):
        if name == "version" or name.startswith(".data/") or name.endswith(".debug_pkl"):
            continue  # the first two the writer writes itself
        content = members[name]
        if name == "data.pkl" or name.startswith("code/"):
            content = _MANGLED.sub(b"___torch_mangle_0", content)
        writer.write_record(_MANGLED.sub(b"___torch_mangle_0", name.encode()).decode(), content, len(content))
    writer.write_end_of_file()
