"""Exported files of every format: how they are opened, by the ending of their name, and what they can do then."""

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from PIL import Image

from ..core.arguments import typed
from ..core.count_limits import check_threads
from ..core.cpus import default_threads
from ..core.errors import InputError
from ..core.files import regular_file
from ..models.execution_provider import AnyProvider, ExecutionProvider, provider_of
from ..models.runtime_settings import RuntimeSettings
from .formats.registry import FORMATS
from .metadata import Metadata

if TYPE_CHECKING:
    from torch import Tensor

Array = np.ndarray[Any, Any]


class Outputs(NamedTuple):
    """What a file answers for N inputs: see `headsmith.export.classifier.Answer`, as numpy arrays."""

    logits: Array
    topk_scores: Array
    topk_indices: Array
    probabilities: Array | None = None

    @classmethod
    def of(cls, tensors: "Iterable[Tensor | None]") -> Self:
        """What a torch module answered, in the order of the fields."""
        arrays: Any = (None if tensor is None else tensor.cpu().numpy() for tensor in tensors)
        return cls(*arrays)

    def rows(self, which: Any) -> "Outputs":
        """The answers to some of the inputs: an index, a slice or a mask."""
        return Outputs._make(None if array is None else array[which] for array in self)

    def joined(self, other: "Outputs") -> "Outputs":
        """These answers, then those to further inputs."""
        pairs = zip(self, other, strict=True)
        return Outputs._make(None if one is None or two is None else np.concatenate([one, two]) for one, two in pairs)


class Model(ABC):
    """An opened file.

    Attributes:
        path: The file.
        metadata: What it says of itself.
        provider: What runs it.
        settings: Library and version, provider and threads, for reports.
        load_seconds: What opening took.
        probabilities: Whether files of this kind give the softmax of all classes where an export asks for it.
    """

    probabilities = True
    path: Path
    metadata: Metadata
    provider: ExecutionProvider
    settings: RuntimeSettings
    load_seconds: float

    def run(self, inputs: Array) -> Outputs:
        """Classify a batch.

        Args:
            inputs: Pixels uint8 ``(N, H, W, 3)``, RGB as `Metadata.prepare` gives them, whatever layout the file
                takes; N = 1 for a file that decodes images itself. For a head alone features ``(N, D)``, float.
        """
        return self.checked(self.answer(self.feed(inputs)))

    def checked(self, outputs: Outputs) -> Outputs:
        """The same outputs; an InputError unless each input has one logit for every label."""
        logits, labels = outputs.logits.shape, len(self.metadata.labels)
        if logits[1:] != (labels,):
            shape = f"logits of shape {logits} found"
            raise InputError(f"{self.path}: {shape}, expected (N, {labels}), one for every label; export it again")
        return outputs

    @abstractmethod
    def answer(self, fed: Array) -> Outputs:
        """Run the file, and nothing else, on what `feed` gave."""

    def ranked(self, logits: Array) -> Outputs | None:
        """What the file makes of logits ``(N, C)``, float32; ``None`` where that part of it cannot be run alone."""
        return None

    @property
    def fixed_batch(self) -> int | None:
        """How many inputs every run of the file takes; ``None`` where that is free."""
        return 1 if self.metadata.encoded else None

    def feed(self, inputs: Array) -> Array:
        """The batch in the layout and dtype that the file declares."""
        if self.metadata.encoded:
            return np.frombuffer(_png(inputs), np.uint8)
        if self.metadata.input_format == "float-nchw":
            return np.ascontiguousarray(inputs.transpose(0, 3, 1, 2), dtype=np.float32)
        return np.ascontiguousarray(inputs, dtype=np.float32 if self.metadata.head_only else np.uint8)


def _png(pixels: Array) -> bytes:
    """The one image of a batch, encoded without loss."""
    (image,) = pixels
    with io.BytesIO() as file:
        Image.fromarray(image).save(file, "PNG", compress_level=1)
        return file.getvalue()


def checked_threads(threads: int | None) -> int:
    """How many threads an operator gets; see `open_model` for the argument.

    Raises:
        InputError: No thread at all.
    """
    if threads is not None:
        check_threads("--threads", threads)
    return threads or default_threads()


@typed
def open_model(path: str | Path, *, provider: AnyProvider = "cpu", threads: int | None = None) -> Model:
    """Open an exported file, by the ending of its name.

    Args:
        path: The file.
        provider: ``cpu``, ``cuda`` or whatever this onnxruntime has, or a YAML file: see `provider_of`.
        threads: Threads inside an operator; ``None`` takes ``OMP_NUM_THREADS``, else the CPUs of this process.

    Raises:
        InputError: The file is missing, damaged or without metadata, or the provider cannot run it here.
    """
    path = Path(path)
    if not os.path.lexists(path):
        raise InputError(f"{path}: no such file")
    regular_file(path)
    runs, threads = provider_of(provider), checked_threads(threads)
    models = {Path(entry.file).suffix: entry.open for entry in FORMATS.values()}
    if path.suffix not in models:
        kind = f"{path.suffix} files" if path.suffix else "files without a suffix"
        raise InputError(f"{path}: cannot run {kind}; expected one of {', '.join(models)}")
    return models[path.suffix](path, runs, threads)
