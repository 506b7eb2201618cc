"""Open an exported file and run it, on the provider that was asked for or not at all."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import torch

from ..models.environment import versions
from ..models.errors import InputError
from ..trainer.features.threads import default_workers
from .metadata import Metadata
from .torchscript_format import read_torchscript

Array = np.ndarray[Any, Any]
PROVIDERS = {
    "cpu": ("CPUExecutionProvider", {}),
    # TF32, the default of this provider, moves logits by up to 1e-1; the search for the fastest convolution is
    # repeated for every new batch size.
    "cuda": ("CUDAExecutionProvider", {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}),
}
CUDA_HELP = (
    "pip install 'onnxruntime-gpu[cuda,cudnn]' on a machine with an NVIDIA driver that fits it, or use --provider cpu"
)
_state = onnxruntime.capi.onnxruntime_pybind11_state
OrtErrors: tuple[type[Exception], ...] = tuple(
    error for error in vars(_state).values() if isinstance(error, type) and issubclass(error, Exception)
)


class Outputs(NamedTuple):
    """What a file answers for N inputs: see `headsmith.export.classifier.Answer`, as numpy arrays."""

    logits: Array
    topk_scores: Array
    topk_indices: Array


class Model(ABC):
    """An opened file.

    Attributes:
        path: The file.
        metadata: What it says of itself.
        provider: What runs it, as ``cpu`` or ``cuda``.
        settings: Provider options, threads and library version, for reports.
        load_seconds: What opening took.
    """

    path: Path
    metadata: Metadata
    provider: str
    settings: dict[str, Any]
    load_seconds: float

    def run(self, inputs: Array) -> Outputs:
        """Classify a batch.

        Args:
            inputs: Pixels uint8 ``(N, H, W, 3)``, RGB after resize and crop, whatever layout the file takes; for a
                head alone features ``(N, D)``, float.
        """
        return self.answer(self.feed(inputs))

    @abstractmethod
    def answer(self, fed: Array) -> Outputs:
        """Run the file, and nothing else, on what `feed` gave."""

    def feed(self, inputs: Array) -> Array:
        """The batch in the layout and dtype that the file declares."""
        if self.metadata.input_format == "float-nchw":
            return np.ascontiguousarray(inputs.transpose(0, 3, 1, 2), dtype=np.float32)
        return np.ascontiguousarray(inputs, dtype=np.float32 if self.metadata.head_only else np.uint8)


def open_model(path: str | Path, *, provider: str = "cpu", threads: int | None = None) -> Model:
    """Open an exported ``.onnx`` or ``.ts`` file.

    Args:
        path: The file.
        provider: ``cpu`` or ``cuda``.
        threads: Threads inside an operator; ``None`` takes ``OMP_NUM_THREADS``, else the CPUs of this process.

    Raises:
        InputError: The file is missing, damaged or without metadata, or the provider cannot run it here.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if provider not in PROVIDERS:
        raise InputError(f"--provider {provider}: not known; expected one of {', '.join(PROVIDERS)}")
    if threads is not None and threads < 1:
        raise InputError(f"--threads: {threads} found, expected 1 or more")
    kinds = {".onnx": OnnxModel, ".ts": TorchScriptModel}
    if path.suffix not in kinds:
        raise InputError(f"{path}: cannot run {path.suffix or 'this'} files; expected one of {', '.join(kinds)}")
    return kinds[path.suffix](path, provider, threads or default_threads())


def default_threads() -> int:
    """``OMP_NUM_THREADS`` where it is set, else the CPUs that this process may use (not those of the host)."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    return default_workers()


class OnnxModel(Model):
    """A file under onnxruntime."""

    def __init__(self, path: Path, provider: str, threads: int) -> None:
        self.path, self.provider = path, provider
        start = time.perf_counter()
        self._session = _open_session(path, provider, threads)
        self.load_seconds = time.perf_counter() - start
        self.metadata = Metadata.from_strings(self._session.get_modelmeta().custom_metadata_map, str(path))
        name = self._session.get_providers()[0]
        self.settings = {
            "runtime": f"{onnxruntime_package()} {onnxruntime.__version__}",
            "provider": name,
            "provider_options": PROVIDERS[provider][1],
            "threads": threads,
        }
        self._check_interface()

    def answer(self, fed: Array) -> Outputs:
        """Run the session."""
        return Outputs(*self._session.run(list(Outputs._fields), {self.metadata.input_name: fed}))

    def _check_interface(self) -> None:
        """The file has the inputs and outputs of its metadata, and one logit a label."""
        inputs = [value.name for value in self._session.get_inputs()]
        outputs = {value.name: value.shape for value in self._session.get_outputs()}
        expected = (self.metadata.input_name, *Outputs._fields)
        if (*inputs, *outputs) != expected:
            raise InputError(f"{self.path}: inputs and outputs {(*inputs, *outputs)}, expected {expected}")
        if outputs["logits"][1] != len(self.metadata.labels):
            raise InputError(
                f"{self.path}: {outputs['logits'][1]} logits, but {len(self.metadata.labels)} labels in its metadata"
            )


def _open_session(path: Path, provider: str, threads: int) -> onnxruntime.InferenceSession:
    name, options = PROVIDERS[provider]
    _require(name)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 3
    wanted = [(name, options)] if provider == "cpu" else [(name, options), ("CPUExecutionProvider", {})]
    try:
        with _quiet_onnxruntime():
            if provider == "cuda":
                onnxruntime.preload_dlls()
            session = onnxruntime.InferenceSession(path, settings, providers=wanted, enable_fallback=0)
    except OrtErrors as error:
        raise InputError(f"{path}: onnxruntime cannot open it ({_short(error)}); export it again") from None
    if session.get_providers()[0] != name:
        raise InputError(f"--provider {provider}: onnxruntime could not start {name} here; {CUDA_HELP}")
    return session


def _require(name: str) -> None:
    available = onnxruntime.get_available_providers()
    if name not in available:
        raise InputError(
            f"--provider: this {onnxruntime_package()} {onnxruntime.__version__} has no {name}, only "
            f"{', '.join(available)}; {CUDA_HELP}"
        )


@contextmanager
def _quiet_onnxruntime() -> Iterator[None]:
    """Keep what onnxruntime logs about a provider that does not start off the terminal: it becomes an error."""
    onnxruntime.set_default_logger_severity(4)
    try:
        yield
    finally:
        onnxruntime.set_default_logger_severity(2)


def onnxruntime_package() -> str:
    """Which distribution the installed onnxruntime is: ``onnxruntime`` or ``onnxruntime-gpu``."""
    return "onnxruntime-gpu" if "onnxruntime-gpu" in versions() else "onnxruntime"


def _short(error: Exception) -> str:
    return " ".join(str(error).split()).removeprefix("[ONNXRuntimeError] : ")[:200]


class TorchScriptModel(Model):
    """A file under libtorch."""

    def __init__(self, path: Path, provider: str, threads: int) -> None:
        self.path, self.provider = path, provider
        if provider == "cuda" and not torch.cuda.is_available():
            raise InputError(f"--provider cuda: torch {torch.__version__} finds no CUDA device; use --provider cpu")
        self._device = torch.device(provider)
        start = time.perf_counter()
        self._module, strings = read_torchscript(path, self._device)
        self.load_seconds = time.perf_counter() - start
        self.metadata = Metadata.from_strings(strings, str(path))
        torch.set_num_threads(threads)
        self.settings = {"runtime": f"torch {torch.__version__}", "provider": provider, "threads": threads}

    def feed(self, inputs: Array) -> Array:
        """As declared; float pixels stay channels-last in memory, which libtorch computes a third faster on a CPU."""
        if self.metadata.input_format == "float-nchw":
            return inputs.astype(np.float32).transpose(0, 3, 1, 2)
        return super().feed(inputs)

    @torch.inference_mode()
    def answer(self, fed: Array) -> Outputs:
        """Run the module."""
        answer = self._module(torch.from_numpy(fed).to(self._device))
        return Outputs(*(tensor.cpu().numpy() for tensor in answer))
