"""The formats of an exported classifier: for each the file in the bundle, what writes it and what opens it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import InputError
from ...models.onnx_session import PROVIDERS
from ..metadata import FEATURES, FLOAT_NCHW, Metadata
from ..runtime import Model, default_threads
from .decoding import extensions
from .exported_program_format import ExportedProgramModel, write_exported_program
from .onnx_format import write_onnx
from .onnx_runtime import OnnxModel
from .timm_format import TimmModel, write_timm
from .torchscript_format import TorchScriptModel, write_torchscript
from .triton_format import write_triton


@dataclass(frozen=True)
class Format:
    """One way to write a classifier.

    Attributes:
        file: What is opened, relative to the bundle; ``*`` stands for the bundle's name.
        write: Called with the classifier, its metadata, the path of ``file``, and ``options`` as keywords.
        model: Called with the path, the provider and the number of threads: opens the file.
        options: Which keywords of `export_classifier` ``write`` takes.
    """

    file: str
    write: Callable[..., None]
    model: Callable[[Path, str, int], Model]
    options: tuple[str, ...] = ()

    def named(self, bundle: str) -> str:
        """``file`` in a bundle of that name."""
        return self.file.replace("*", bundle)


FORMATS = {
    "onnx": Format("model.onnx", write_onnx, OnnxModel, options=("opset",)),
    "torchscript": Format("model.ts", write_torchscript, TorchScriptModel),
    "pt2": Format("model.pt2", write_exported_program, ExportedProgramModel),
    "timm": Format("model.safetensors", write_timm, TimmModel),
    "triton": Format("triton/*/1/model.onnx", write_triton, OnnxModel, options=("opset",)),
}


def check_formats(formats: tuple[str, ...], metadata: Metadata) -> None:
    """Raise an `InputError` unless these are some of `FORMATS`, each of them once, that can take such inputs."""
    if not formats or not set(formats) <= set(FORMATS) or len(set(formats)) < len(formats):
        raise InputError(f"--format: {', '.join(formats) or 'none'} found, expected some of {', '.join(FORMATS)}")
    if metadata.encoded:
        extensions()
        if formats != ("onnx",):
            raise InputError(f"--format {', '.join(formats)}: --input encoded is for onnx alone; export twice")
    elif metadata.resize and "timm" in formats:
        raise InputError("--format timm: timm resizes before its networks, not inside; export it without --resize")
    elif "timm" in formats and metadata.input_format not in (FLOAT_NCHW, FEATURES):
        raise InputError(
            f"--format timm: timm's networks take float images, found --input {metadata.input_format}; export it alone"
        )


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
    models = {Path(entry.file).suffix: entry.model for entry in FORMATS.values()}
    if path.suffix not in models:
        raise InputError(f"{path}: cannot run {path.suffix or 'this'} files; expected one of {', '.join(models)}")
    return models[path.suffix](path, provider, threads)
