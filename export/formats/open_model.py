"""Exported files of every format are opened by the ending of their name."""

from pathlib import Path

from ...core.arguments import typed
from ...core.cpus import default_threads
from ...core.errors import InputError
from ...models.onnx_session import PROVIDERS
from ..runtime import Model
from .registry import FORMATS


def checked_threads(provider: str, threads: int | None) -> int:
    """How many threads an operator gets; see `open_model` for the arguments.

    Raises:
        InputError: A provider that is not known, or no thread at all.
    """
    if provider not in PROVIDERS:
        raise InputError(f"--provider {provider}: not known; expected one of {', '.join(PROVIDERS)}")
    if threads is not None and threads < 1:
        raise InputError(f"--threads: {threads} found, expected 1 or more")
    return threads or default_threads()


@typed
def open_model(path: str | Path, *, provider: str = "cpu", threads: int | None = None) -> Model:
    """Open an exported file, by the ending of its name.

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
    threads = checked_threads(provider, threads)
    models = {Path(entry.file).suffix: entry.open for entry in FORMATS.values()}
    if path.suffix not in models:
        raise InputError(f"{path}: cannot run {path.suffix or 'this'} files; expected one of {', '.join(models)}")
    return models[path.suffix](path, provider, threads)
