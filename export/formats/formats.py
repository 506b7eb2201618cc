"""The formats of an exported classifier: for each the file in the bundle, what writes it and what opens it."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.arguments import typed
from ...core.cpus import default_threads
from ...core.errors import InputError, near
from ...models.onnx_session import PROVIDERS
from ..metadata import FEATURES, FLOAT_NCHW, Metadata
from ..runtime import Model

if TYPE_CHECKING:
    from ..classifier import Classifier


@dataclass(frozen=True)
class Format:
    """One way to write a classifier.

    Attributes:
        file: What is opened, relative to the bundle; ``*`` stands for the bundle's name.
        writer: Module and name of what writes it, called with the classifier, its metadata, the path of ``file``, and
            ``options`` as keywords. It is imported when it is first used: torch is no part of opening an ONNX file.
        model: Module and name of what opens it, called with the path, the provider and the number of threads.
        options: Which keywords of `export_classifier` the writer takes.
        checker: Module and name of what refuses a classifier that the writer cannot write, before anything is computed.
    """

    file: str
    writer: str
    model: str
    options: tuple[str, ...] = ()
    checker: str | None = None

    def check(self, classifier: "Classifier", metadata: Metadata) -> None:
        """Raise an `InputError` for a classifier that cannot be written so."""
        if self.checker is not None:
            _imported(self.checker)(classifier, metadata)

    def write(self, classifier: "Classifier", metadata: Metadata, path: Path, **options: Any) -> None:
        """Write the file."""
        _imported(self.writer)(classifier, metadata, path, **options)

    def open(self, path: Path, provider: str, threads: int) -> Model:
        """Open the file."""
        model: Model = _imported(self.model)(path, provider, threads)
        return model

    def named(self, bundle: str) -> str:
        """``file`` in a bundle of that name."""
        return self.file.replace("*", bundle)


FORMATS = {
    "onnx": Format("model.onnx", "onnx_format.write_onnx", "onnx_runtime.OnnxModel", options=("opset",)),
    "torchscript": Format("model.ts", "torchscript_format.write_torchscript", "torchscript_format.TorchScriptModel"),
    "pt2": Format(
        "model.pt2",
        "exported_program_format.write_exported_program",
        "exported_program_format.ExportedProgramModel",
    ),
    "timm": Format(
        "model.safetensors", "timm_format.write_timm", "timm_format.TimmModel", checker="timm_format.check_timm"
    ),
    "triton": Format(
        "triton/*/1/model.onnx", "triton_format.write_triton", "onnx_runtime.OnnxModel", options=("opset",)
    ),
}


def _imported(reference: str) -> Any:
    """What ``module.name`` of this folder refers to."""
    module, _, name = reference.partition(".")
    return getattr(import_module(f".{module}", __package__), name)


def check_formats(formats: tuple[str, ...], metadata: Metadata) -> None:
    """Raise an `InputError` unless these are some of `FORMATS`, each of them once, that can take such inputs."""
    if not formats or not set(formats) <= set(FORMATS) or len(set(formats)) < len(formats):
        hint = near(next((name for name in formats if name not in FORMATS), ""), FORMATS)
        raise InputError(f"--format: {', '.join(formats) or 'none'} found, expected some of {', '.join(FORMATS)}{hint}")
    if metadata.encoded:
        from .extensions import extensions

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
