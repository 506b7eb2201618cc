"""Does a bundle's manifest say of a file what the file does?"""

from typing import Any

import numpy as np

from ...core.errors import DamagedFileError
from ..bundle.manifest import MANIFEST, Manifest
from ..metadata import Metadata
from ..runtime import Array, Model, Outputs


def input_shape(metadata: Metadata, shape: tuple[int, ...]) -> tuple[int | str, ...]:
    """The shape of a file's input, as a manifest has it.

    Args:
        metadata: What the file says of itself.
        shape: That of one input of a file without `Metadata.resize`.
    """
    if metadata.encoded:
        return ("bytes",)
    return ("batch", "height", "width", 3) if metadata.resize else ("batch", *shape)


def check_stated(manifest: Manifest, model: Model, inputs: Array, found: Outputs) -> None:
    """Compare the fields that no hash covers with a run.

    Args:
        manifest: The bundle's.
        model: One of its files.
        inputs: What it was given, for `Model.run`.
        found: What it answered.

    Raises:
        DamagedFileError: They disagree.
    """
    outputs = tuple(name for name, values in found._asdict().items() if values is not None)
    declared = Model.feed(model, inputs[:1])  # a network in a file of weights alone is fed in its own way
    half = model.feed(inputs[:1]).dtype == np.float16
    stated = [name for name in manifest.outputs if model.probabilities or name != "probabilities"]
    own, backbone = model.metadata, manifest.backbone
    pairs: dict[str, tuple[Any, Any]] = {
        "k": (found.topk_indices.shape[1], manifest.k),
        "outputs": (outputs, tuple(stated)),
        "input.name": (own.input_name, manifest.input.name),
        "input.dtype": ("float16" if half else str(declared.dtype), manifest.input.dtype),
        "input.shape": (input_shape(own, declared.shape[1:]), manifest.input.shape),
        "head.kind": (own.head, manifest.head.kind),
        "labels_sha256": (own.labels_sha256, manifest.labels_sha256),
        "backbone.weights_sha256": (own.backbone.weights_sha256, backbone and backbone.weights_sha256),
        "features.fingerprint": (own.feature_set, manifest.features.fingerprint),
    }
    for field, (expected, said) in pairs.items():
        if said != expected:
            raise DamagedFileError(
                f"{model.path}: has {field} {expected!r}, {MANIFEST} says {said!r}: edited by hand? export it again"
            )
