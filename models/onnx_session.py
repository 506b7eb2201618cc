"""Open an ONNX file under onnxruntime, on the provider that was asked for or not at all."""

import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnxruntime

from ..core.environment import versions
from ..core.errors import DamagedFileError, InputError, ProviderError
from .runtime_settings import RuntimeSettings

PROVIDERS: dict[str, tuple[str, dict[str, str]]] = {
    "cpu": ("CPUExecutionProvider", {}),
    # TF32, the default of this provider, moves logits by up to 1e-1; the search for the fastest convolution is
    # repeated for every new batch size.
    "cuda": ("CUDAExecutionProvider", {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}),
}
_CUDA_PACKAGE = "pip install 'onnxruntime-gpu[cuda,cudnn]' on a machine with an NVIDIA driver that fits it"
_state = onnxruntime.capi.onnxruntime_pybind11_state
OrtErrors: tuple[type[Exception], ...] = tuple(
    error for error in vars(_state).values() if isinstance(error, type) and issubclass(error, Exception)
)
# Whatever a session raises: its own errors, and what pybind11 makes of C++'s, of text that is not UTF-8 among them.
SessionErrors: tuple[type[Exception], ...] = (
    *OrtErrors,
    RuntimeError,
    ValueError,
    IndexError,
    OverflowError,
    MemoryError,
)
_SKEW = {
    "opset": re.compile(r"Opset (\d+) is under development.*till opset (\d+)", re.DOTALL),
    "IR version": re.compile(r"IR version: (\d+), max supported IR version: (\d+)"),
}


def open_session(
    model: Path | bytes,
    provider: str,
    threads: int,
    *,
    name: str,
    data_folder: Path | None = None,
    operators: str | None = None,
    option: str = "--provider",
) -> onnxruntime.InferenceSession:
    """Open a session.

    Args:
        model: The file, or its bytes.
        provider: ``cpu`` or ``cuda``.
        threads: Threads inside an operator.
        name: How to call the file in an error.
        data_folder: Where the external data of a model in bytes lie.
        operators: A library of further operators.
        option: How the user chose the provider.

    Raises:
        DamagedFileError: onnxruntime cannot read the file, or it is newer than onnxruntime.
        ProviderError: The provider cannot run here.
    """
    kind, options = PROVIDERS[provider]
    require_provider(provider, option)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 4  # what goes wrong is raised, and told once
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if data_folder is not None:
        settings.add_session_config_entry("session.model_external_initializers_file_folder_path", str(data_folder))
    if operators is not None:
        settings.register_custom_ops_library(operators)
    wanted = [(kind, options)] if provider == "cpu" else [(kind, options), ("CPUExecutionProvider", {})]
    try:
        with _quiet_onnxruntime():
            if provider == "cuda":
                onnxruntime.preload_dlls()
            session = onnxruntime.InferenceSession(model, settings, providers=wanted, enable_fallback=0)
    except SessionErrors as error:
        raise DamagedFileError(f"{name}: {_cannot_open(error)}; export it again") from None
    if session.get_providers()[0] != kind:
        raise ProviderError(
            f"{option} {provider}: onnxruntime could not start {kind} here; {_CUDA_PACKAGE}, or use {option} cpu"
        )
    return session


def onnxruntime_package() -> str:
    """Which distribution the installed onnxruntime is: ``onnxruntime`` or ``onnxruntime-gpu``."""
    return "onnxruntime-gpu" if "onnxruntime-gpu" in versions() else "onnxruntime"


def session_settings(session: onnxruntime.InferenceSession, provider: str, threads: int) -> RuntimeSettings:
    """What a session runs on."""
    return RuntimeSettings(
        runtime=f"{onnxruntime_package()} {onnxruntime.__version__}",
        provider=session.get_providers()[0],
        threads=threads,
        provider_options=PROVIDERS[provider][1],
    )


def short_reason(error: Exception) -> str:
    """What onnxruntime says, on one line and without the place in its own source."""
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", " ".join(str(error).split()))
    text = re.sub(r"/onnxruntime_src/.*\)(?: const)?(?: \[with [^\]]*\])? (?=\w)", "", text)
    return textwrap.shorten(text, 200, placeholder=" ...")


def innermost(error: Exception) -> str:
    """The same of what the session raised, where ``error`` was made of that and names the file already."""
    while isinstance(error, InputError) and isinstance(error.__context__, SessionErrors):
        error = error.__context__
    return short_reason(error)


def _cannot_open(error: Exception) -> str:
    for what, pattern in _SKEW.items():
        if found := pattern.search(str(error)):
            return f"{what} {found[1]}, onnxruntime {onnxruntime.__version__} takes up to {found[2]}"
    return f"onnxruntime cannot open it ({short_reason(error)})"


def require_provider(provider: str, option: str = "--provider") -> None:
    """Refuse a provider that the installed onnxruntime was built without; whether it starts is seen when it does.

    Args:
        provider: One of `PROVIDERS`.
        option: How the user chose it.

    Raises:
        ProviderError: It was.
    """
    kind, _ = PROVIDERS[provider]
    available = onnxruntime.get_available_providers()
    if kind not in available:
        raise ProviderError(
            f"{option}: this {onnxruntime_package()} {onnxruntime.__version__} has no {kind}, only "
            f"{', '.join(available)}; {_CUDA_PACKAGE}, or use {option} cpu"
        )


@contextmanager
def _quiet_onnxruntime() -> Iterator[None]:
    """Keep what onnxruntime logs about a provider that does not start off the terminal: it becomes an error."""
    onnxruntime.set_default_logger_severity(4)
    try:
        yield
    finally:
        onnxruntime.set_default_logger_severity(2)
