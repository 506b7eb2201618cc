"""The same classifier under torch."""

import time
from pathlib import Path

import torch

from ...core.errors import InputError
from ...export.classifier import Classifier
from ...export.formats.registry import FORMATS
from ...export.formats.torch_device import on_device, torch_device
from ...export.metadata import Metadata
from ...export.runtime import Array, Model, Outputs
from ...models.execution_provider import ExecutionProvider
from ...models.runtime_settings import RuntimeSettings
from ..zoo import Candidate
from ..zoo.exported import library_classifier
from ..zoo.zoo_rows import is_library

UNDER_TORCH = ("pt2", "torchscript", "timm")


class ModuleModel(Model):
    """A classifier as the Python module that it was exported from."""

    def __init__(
        self, classifier: Classifier, metadata: Metadata, path: Path, provider: ExecutionProvider, threads: int
    ) -> None:
        start = time.perf_counter()
        self._device = torch_device(provider)
        self._classifier = classifier.to(self._device)
        self.path, self.metadata, self.provider = path, metadata, provider
        self.load_seconds = time.perf_counter() - start
        self.settings = RuntimeSettings(f"torch {torch.__version__}", str(self._device), threads)

    def answer(self, fed: Array) -> Outputs:
        """Run the module."""
        with torch.inference_mode():
            return Outputs.of(self._classifier(on_device(fed, self._device)))


def torch_twin(candidate: Candidate, model: Model) -> Model:
    """Open the same classifier under torch, on the same device.

    Args:
        candidate: A bundle that holds a file for torch, or a network of a library.
        model: The candidate, opened.

    Raises:
        InputError: Any other classifier.
    """
    threads = model.settings.threads
    if is_library(candidate.source):
        classifier, _ = library_classifier(candidate.source, candidate.checkpoint)
        return ModuleModel(classifier, model.metadata, candidate.path, model.provider, threads)
    for name in UNDER_TORCH if candidate.bundle else ():
        if candidate.bundle and (candidate.bundle.path / FORMATS[name].file).is_file():
            return candidate.bundle.open(name, provider=model.provider, threads=threads)
    raise InputError(
        f"--against torch: {candidate.source} has no file for torch; export a bundle with --format pt2 too, or "
        "evaluate without it"
    )
