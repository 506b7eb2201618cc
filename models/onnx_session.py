"""Open an ONNX file under onnxruntime, on the provider that was asked for or not at all."""

import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

import onnxruntime

from ..core.errors import DamagedFileError, InputError, ProviderError
from .execution_provider import CPU, TENSORRT, ExecutionProvider, package_of, runtime
from .runtime_settings import RuntimeSettings

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
# What precedes a reason in errors of OpenVINO: places in its source, of which one leads to the next.
_IN_OPENVINO = (r"^.*\[OpenVINO-EP\] ", r"Check '[^']*' failed at \S+:\d+: (?:FrontEnd API failed with \w+: )?")
_SKEW = {
    "opset": re.compile(r"Opset (\d+) is under development.*till opset (\d+)", re.DOTALL),
    "IR version": re.compile(r"IR version: (\d+), max supported IR version: (\d+)"),
}


def open_session(
    model: Path | bytes,
    provider: ExecutionProvider,
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
        provider: What runs it.
        threads: Threads inside an operator.
        name: How to call the file in an error.
        data_folder: Where the external data of a model in bytes lie.
        operators: A library of further operators.
        option: How the user chose the provider.

    Raises:
        DamagedFileError: onnxruntime cannot read the file, or it is newer than onnxruntime.
        InputError: The provider cannot run the file, or does not take one of its options.
        ProviderError: The provider cannot run here.
    """
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 4  # what goes wrong is raised, and told once
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if data_folder is not None:
        settings.add_session_config_entry("session.model_external_initializers_file_folder_path", str(data_folder))
    if operators is not None:
        settings.register_custom_ops_library(operators)

    def opened(*wanted: tuple[str, dict[str, str]]) -> onnxruntime.InferenceSession:
        return onnxruntime.InferenceSession(model, settings, providers=list(wanted), enable_fallback=0)

    try:
        with _quiet_onnxruntime():
            if provider.on_cuda:
                _load_libraries(provider)
            own = provider.with_defaults(threads)
            session = opened((provider.kind, own), *((kind, {}) for kind in provider.others))
    except SessionErrors as error:
        if provider.is_cpu:
            raise DamagedFileError(f"{name}: {_cannot_open(error)}; export it again") from None
        try:
            opened((CPU.kind, {}))
        except SessionErrors as on_cpu:
            raise DamagedFileError(f"{name}: {_cannot_open(on_cpu)}; export it again") from None
        raise InputError(f"{name}: {provider} cannot run it ({short_reason(error)}); use --provider cpu") from None
    if session.get_providers()[0] != provider.kind:
        options = f" with {provider.options}" if provider.options else ""
        raise ProviderError(
            f"{option} {provider}: onnxruntime could not start {provider.kind}{options} here; "
            f"{package_of(provider.kind)}, or use {option} cpu"
        )
    return session


def _load_libraries(provider: ExecutionProvider) -> None:
    """Load the libraries of CUDA, and of TensorRT where its package is installed, for onnxruntime to find them."""
    onnxruntime.preload_dlls()
    if provider.kind == TENSORRT:
        with suppress(ImportError, OSError):
            import_module("tensorrt")


def check_used(session: onnxruntime.InferenceSession, name: str) -> None:
    """Refuse a provider that runs not one node of a graph.

    Args:
        session: Its session.
        name: How to call its file in an error.

    Raises:
        InputError: It runs none.
    """
    first, found = session.get_providers()[0], {part.ep_name for part in session.get_provider_graph_assignment_info()}
    if found and first not in found:
        raise InputError(f"{name}: {first} runs not one of its nodes; use --provider cpu")


def session_settings(
    session: onnxruntime.InferenceSession, provider: ExecutionProvider, threads: int
) -> RuntimeSettings:
    """What a session runs on."""
    return RuntimeSettings(
        runtime=runtime(),
        provider=session.get_providers()[0],
        threads=threads,
        provider_options=provider.with_defaults(threads),
    )


def short_reason(error: Exception) -> str:
    """What onnxruntime says, on one line and without the place in its own source."""
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", " ".join(str(error).split()))
    for place in _IN_OPENVINO:
        text = re.sub(place, "", text)
    text = re.sub(r"/onnxruntime(?:_src)?/.*\)(?: const)?(?: \[with [^\]]*\])? (?=\w)", "", text)
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


def require_provider(provider: ExecutionProvider, option: str = "--provider") -> None:
    """Refuse a provider that does not start here, or not with its options, as a graph of one node tells.

    Args:
        provider: The provider.
        option: How the user chose it.

    Raises:
        ProviderError: It does not.
    """
    from onnx import TensorProto, helper

    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "probe", value[:1], value[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    try:
        open_session(model.SerializeToString(), provider, 1, name="probe", option=option)
    except ProviderError:
        raise
    except InputError as error:
        advice = "correct its options" if provider.options else package_of(provider.kind)
        raise ProviderError(
            f"{option} {provider}: cannot start here ({innermost(error)}); {advice}, or use {option} cpu"
        ) from None


@contextmanager
def _quiet_onnxruntime() -> Iterator[None]:
    """Keep what onnxruntime logs about a provider that does not start off the terminal: it becomes an error."""
    onnxruntime.set_default_logger_severity(4)
    try:
        yield
    finally:
        onnxruntime.set_default_logger_severity(2)
