"""The formats of an exported classifier: for each the file in the bundle, what writes it and what opens it."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...models.execution_provider import ExecutionProvider
    from ..classifier import Classifier
    from ..metadata import Metadata
    from ..options import ExportOptions
    from ..runtime import Model


@dataclass(frozen=True)
class Format:
    """One way to write a classifier.

    Attributes:
        file: What is opened, relative to the bundle; ``*`` stands for the bundle's name.
        writer: Module and name of what writes it, called with the classifier, its metadata, the path of ``file``, and
            ``options`` as keywords. It is imported when it is first used: torch is no part of opening an ONNX file.
        model: Module and name of what opens it, called with the path, the provider and the number of threads.
        options: Which of `ExportOptions` the writer takes.
        checker: Module and name of what refuses a classifier that the writer cannot write, before anything is computed.
    """

    file: str
    writer: str
    model: str
    options: tuple[str, ...] = ()
    checker: str | None = None

    def check(self, classifier: "Classifier", metadata: "Metadata") -> None:
        """Raise an `InputError` for a classifier that cannot be written so."""
        if self.checker is not None:
            _imported(self.checker)(classifier, metadata)

    def write(self, classifier: "Classifier", metadata: "Metadata", path: Path, options: "ExportOptions") -> None:
        """Write the file."""
        _imported(self.writer)(classifier, metadata, path, **{name: getattr(options, name) for name in self.options})

    def open(self, path: Path, provider: "ExecutionProvider", threads: int) -> "Model":
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
