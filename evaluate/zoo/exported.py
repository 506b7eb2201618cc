"""Pretrained networks of timm and torchvision as ONNX files, written once and kept."""

import os
from dataclasses import dataclass
from pathlib import Path

import onnx
import torch
from filelock import FileLock
from torch import Tensor

from ...core.errors import InputError
from ...core.files import new_folder, sha256_json
from ...export.classifier import Classifier
from ...export.formats.onnx_format import write_onnx
from ...export.metadata import Metadata, identity
from ...export.options import OPSET
from ...models.backbone import Backbone, load_backbone
from ...models.backbones.published import imagenet_accuracy
from ...models.heads import Head
from .candidate import Published

FILE = "model.onnx"


@dataclass(frozen=True)
class Exported:
    """A file in the cache.

    Attributes:
        path: The file.
        weights_sha256: A hash over the network's weights.
        parameters: How many weights the network has.
        published: What its library says of it.
    """

    path: Path
    weights_sha256: str
    parameters: int
    published: Published | None


def exported(source: str, checkpoint: str | Path | None = None) -> Exported:
    """Export a pretrained network with its own classifier and preprocessing, or find it in the cache.

    The cache is ``$HEADSMITH_CACHE``, else ``headsmith`` in ``$XDG_CACHE_HOME`` or ``~/.cache``. Its key holds the
    weights, the recipe, the names of the classes and the versions of what exports.

    Args:
        source: ``lite0``, ``timm:NAME`` or ``torchvision:NAME[/WEIGHTS]``.
        checkpoint: Local weights in place of a download.

    Raises:
        InputError: No such network, no weights, or outputs of which nobody says what they are.
        ExportError: A network that ONNX cannot hold.
    """
    classifier, metadata = library_classifier(source, checkpoint)
    network = classifier.backbone
    assert network is not None  # noqa: S101 - it was just put in
    versions = {"opset": OPSET, "torch": torch.__version__, "onnx": onnx.__version__}
    key = sha256_json([metadata.to_strings(), versions])[:32]
    folder = cache_folder() / "exported" / key
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{key}.lock")):
        if not (folder / FILE).is_file():
            with new_folder(folder) as new:
                write_onnx(classifier, metadata, new / FILE)
    figures = None if checkpoint else published(source)
    return Exported(folder / FILE, network.weights_sha256, network.parameter_count, figures)


def library_classifier(source: str, checkpoint: str | Path | None = None) -> tuple[Classifier, Metadata]:
    """A pretrained network with its own classifier and preprocessing, as it is exported, and what its file says.

    Raises:
        InputError: See `exported`.
    """
    network = load_backbone(source, checkpoint=checkpoint, whole=True)
    about = identity(network.record(), network.feature_dim)
    metadata = Metadata(
        _labels(network, source), "float-nchw", network.preprocessing, about, "", head=IdentityHead.kind
    )
    return Classifier(IdentityHead(network.feature_dim, network.feature_dim), network), metadata


class IdentityHead(Head):
    """In place of a head, for a network that gives logits."""

    kind = "own"

    def forward(self, features: Tensor) -> Tensor:
        """The logits as they are."""
        return features


def cache_folder() -> Path:
    """Where files are kept that can be made again."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("HEADSMITH_CACHE") or base / "headsmith")


def _labels(network: Backbone, source: str) -> tuple[str, ...]:
    columns = network.source.class_names() or ()
    unique = [names for names in columns if len(set(names)) == len(names) == network.feature_dim]
    if not unique:
        raise InputError(
            f"{source}: the classes of its {network.feature_dim} outputs are not known; export a bundle with labels"
        )
    return unique[0]


def published(source: str) -> Published | None:
    """What the library says of its weights, see `imagenet_accuracy`."""
    found = imagenet_accuracy(source)
    if found is None:
        return None
    top1, top5, said = found
    return Published(top1=top1, top5=top5, source=said)
