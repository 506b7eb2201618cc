"""Run an ONNX file under onnxruntime, on the provider that was asked for or not at all."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnxruntime

from ..models.environment import versions
from ..models.errors import InputError
from .metadata import Metadata
from .runtime import Array, Model, Outputs

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
        return Outputs(*self._session.run(self._outputs, {self.metadata.input_name: fed}))

    def _check_interface(self) -> None:
        """The file has the inputs and outputs of its metadata, and one logit a label."""
        inputs = [value.name for value in self._session.get_inputs()]
        outputs = {value.name: value.shape for value in self._session.get_outputs()}
        self._outputs = list(outputs)
        expected = (self.metadata.input_name, *Outputs._fields)
        if (*inputs, *outputs) not in (expected, expected[:-1]):
            raise InputError(f"{self.path}: inputs and outputs {(*inputs, *outputs)}, expected {expected[:-1]}")
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
