"""Does a bundle's manifest say of a file what the file does?"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.errors import DamagedFileError
from ..bundle.bundle import MANIFEST
from ..metadata import Metadata
from ..runtime import Array, Model, Outputs


def input_shape(metadata: Metadata, shape: tuple[int, ...]) -> list[str | int]:
    """The shape of a file's input, as a manifest has it.

    Args:
        metadata: What the file says of itself.
        shape: That of one input of a file without `Metadata.resize`.
    """
    if metadata.encoded:
        return ["bytes"]
    return ["batch", "height", "width", 3] if metadata.resize else ["batch", *shape]


def check_stated(manifest: Mapping[str, Any], model: Model, inputs: Array, found: Outputs) -> None:
    """Compare the fields that no hash covers with a run.

    Args:
        manifest: The bundle's.
        model: One of its files.
        inputs: What it was given, for `Model.run`.
        found: What it answered.

    Raises:
        DamagedFileError: They disagree.
    """
    outputs = [name for name, values in found._asdict().items() if values is not None]
    declared = Model.feed(model, inputs[:1])  # a network in a file of weights alone is fed in its own way
    half = model.feed(inputs[:1]).dtype == np.float16
    own = {
        "k": found.topk_indices.shape[1],
        "outputs": outputs,
        "input.name": model.metadata.input_name,
        "input.dtype": "float16" if half else str(declared.dtype),
        "input.shape": input_shape(model.metadata, declared.shape[1:]),
        "head.kind": model.metadata.head,
        "labels_sha256": model.metadata.labels_sha256,
        "backbone.weights_sha256": model.metadata.backbone.weights_sha256,
        "features.fingerprint": model.metadata.feature_set,
    }
    for field, expected in own.items():
        outer, _, inner = field.partition(".")
        part: Any = manifest if not inner else manifest[outer] or {}
        stated = part.get(inner or outer, expected)
        if field == "outputs" and not model.probabilities:
            stated = [name for name in stated if name != "probabilities"]
        if stated != expected:
            raise DamagedFileError(
                f"{model.path}: has {field} {expected}, {MANIFEST} says {stated}: edited by hand? export it again"
            )
