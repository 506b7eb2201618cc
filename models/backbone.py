"""Frozen backbones: image to feature, with the preprocessing they were trained with."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from ..core.arguments import typed
from ..core.errors import InputError, near
from ..core.files import regular_file, sha256_file
from .backbone_record import BackboneRecord, BackboneRequest
from .backbones.libraries import ONNX
from .backbones.tuned import tuned_backbone
from .preprocessing import Preprocessing
from .preprocessing_layers import Normalize

if TYPE_CHECKING:
    from .backbone_sources import Source

PROBE_TOLERANCE = 1e-4
LARGEST_IMAGE = 4096
LIBRARIES = ("timm", "torchvision", "cifar", "onnx")


class Backbone(nn.Module):
    """A frozen network: normalised images to features ``(N, D)``, float32.

    Images are ``(N, 3, H, W)``, or what else the layout of its preprocessing says.

    Attributes:
        preprocessing: The network's own recipe.
        feature_dim: D.
        parameter_count: How many weights its features depend on: without a classifier that is cut off.
        weights_sha256: A hash over every parameter and buffer.
        source: Where it comes from, its own classifier included.
    """

    def __init__(self, source: "Source", request: BackboneRequest) -> None:
        from .backbone_sources import count_weights

        super().__init__()
        self.source = source
        self.network = source.network.eval().requires_grad_(False)
        self.features = source.features
        self.tap = source.tap
        self.preprocessing = source.preprocessing
        self.request = request
        self.weights_sha256 = source.weights_sha256 or hash_weights(self.network)
        self.parameter_count = count_weights(self.network) if source.parameters is None else source.parameters
        self.probe = self._probe()
        self.feature_dim = self.probe.shape[0]

    def forward(self, images: Tensor) -> Tensor:
        """Features of normalised images."""
        return self.features(self.network, images)

    def train(self, mode: bool = True) -> "Backbone":
        """A backbone is frozen: it stays in evaluation mode whatever is asked."""
        return super().train(False)

    def record(self) -> BackboneRecord:
        """What identifies this backbone: enough to rebuild it and to see that it is the same."""
        return BackboneRecord(
            **vars(self.request),
            tap=self.tap,
            feature_dim=self.feature_dim,
            weights_sha256=self.weights_sha256,
            preprocessing=self.preprocessing,
            probe=tuple(round(float(value), 6) for value in self.probe[:16]),
        )

    def pattern(self) -> Tensor:
        """A fixed normalised image, as a batch of one: two builds that differ anywhere that matters differ on it."""
        height, width = self.preprocessing.crop_size
        pattern = np.random.default_rng(0).integers(0, 256, (1, 3, height, width), dtype=np.uint8)
        normalised: Tensor = Normalize(self.preprocessing)(torch.from_numpy(pattern))
        return normalised

    @torch.inference_mode()
    def _probe(self) -> Tensor:
        """The feature of the pattern."""
        from .backbone_sources import first_line

        height, width = self.preprocessing.crop_size
        try:
            features: Tensor = self(self.pattern())
        except (RuntimeError, AssertionError) as error:
            raise InputError(
                f"--backbone {self.request.spec}: does not take images of {height} x {width} pixels "
                f"({first_line(error)}); choose another --image-size"
            ) from None
        if features.ndim != 2:
            raise InputError(f"{self.request.spec}: features of shape {tuple(features.shape)}, expected (N, D)")
        if not features.isfinite().all():
            raise InputError(
                f"{self.request.spec}: the backbone gives NaN or infinite features for an image of noise; check "
                "its weights"
            )
        return features[0]


def hash_weights(network: nn.Module) -> str:
    """SHA-256 over names, shapes, dtypes and values of a network's state, in hexadecimal."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


@typed
def load_backbone(
    spec: str,
    *,
    checkpoint: str | Path | None = None,
    image_size: int | None = None,
    preprocessing: str | Path | Preprocessing | None = None,
    layer: str | None = None,
    drop_background: bool = False,
    whole: bool = False,
    from_scratch: bool = False,
) -> Backbone:
    """Build a frozen backbone on the CPU.

    Args:
        spec: ``lite0`` (packaged EfficientNet-Lite0), ``timm:NAME``, ``torchvision:NAME[/WEIGHTS]`` or ``onnx:FILE``,
            a classifier that is cut before its last layer; ``cifar:resnet18``, which has no published weights; or a run
            of `headsmith.finetune`, whose backbone it is.
        checkpoint: Local weights (a state dict: ``.pth``, ``.pt`` or ``.safetensors``) in place of a download.
        image_size: Another crop edge in pixels than the backbone's own; resize keeps its ratio to it.
        preprocessing: Of an ONNX file that does not say it itself: see `read_recipe`.
        layer: The last layer of an ONNX file where it is not plain.
        drop_background: The first output of an ONNX file is no class.
        whole: Its own classifier included, not for ONNX files: its features are its logits.
        from_scratch: Random weights from torch's generator, not for ONNX files.

    Raises:
        InputError: An unknown spec (near names are listed), weights that cannot be had or do not fit, or a network
            that does not give one feature vector an image.
    """
    if image_size is not None and not 1 <= image_size <= LARGEST_IMAGE:
        raise InputError(f"--image-size: {image_size} found, expected 1 to {LARGEST_IMAGE} pixels")
    tuned = tuned_backbone(spec)
    if tuned is not None:
        if checkpoint is not None or from_scratch:
            flag = "--from-scratch" if checkpoint is None else "--checkpoint"
            raise InputError(f"{flag}: --backbone {spec} has its own weights; leave one of them out")
        spec, checkpoint, image_size = tuned.spec, tuned.file, image_size or tuned.image_size
    library, _, name = spec.partition(":")
    if spec != "lite0" and not (library in LIBRARIES and name):
        known = "lite0, timm:NAME, torchvision:NAME[/WEIGHTS], onnx:FILE, cifar:resnet18 or a fine-tuned run"
        raise InputError(f"--backbone {spec}: expected {known}{near(library, ('lite0', *LIBRARIES))}")
    path = None if checkpoint is None else Path(checkpoint)
    if spec.startswith(ONNX):
        for flag, given in (("--checkpoint", checkpoint), ("--image-size", image_size)):
            if given is not None:
                raise InputError(f"{flag}: {given} found; an ONNX file has its own weights, --preprocessing its size")
        from .onnx_backbone import onnx_source

        file = Path(spec.removeprefix(ONNX))
        request = BackboneRequest(
            spec=f"{ONNX}{file.name}", file=str(file), layer=layer, drop_background=drop_background
        )
        return Backbone(onnx_source(file, preprocessing, layer, drop_background), request)
    for flag, value in (("--preprocessing", preprocessing), ("--layer", layer), ("--drop-background", drop_background)):
        if value:
            raise InputError(f"{flag}: only for --backbone onnx:FILE, {spec} has its own")
    from .backbone_sources import find_source

    if path is not None and from_scratch:
        raise InputError(f"--from-scratch: found beside --checkpoint {path}, which has weights; leave one of them out")
    if path is not None and not path.exists():
        raise InputError(f"--checkpoint {path}: no such file")
    if path is not None:
        regular_file(path)
    request = BackboneRequest(
        spec=spec,
        checkpoint=None if path is None else str(path),
        image_size=image_size,
        checkpoint_sha256=None if path is None else sha256_file(path),
    )
    return Backbone(find_source(spec, path, image_size, whole=whole, from_scratch=from_scratch), request)


def backbone_from_record(record: BackboneRecord) -> Backbone:
    """Rebuild the backbone of a feature set and prove that it is the same.

    Raises:
        InputError: Its weights or its answer to a fixed probe differ from the record.
    """
    if record.file is not None:
        backbone = load_backbone(
            ONNX + record.file,
            preprocessing=record.preprocessing,
            layer=record.layer,
            drop_background=bool(record.drop_background),
        )
    else:
        backbone = load_backbone(record.spec, checkpoint=record.checkpoint, image_size=record.image_size)
    if backbone.weights_sha256 != record.weights_sha256:
        raise InputError(
            f"backbone {record.spec}: weights {backbone.weights_sha256[:12]}, the features were made with "
            f"{record.weights_sha256[:12]}; use those weights or extract again"
        )
    probe = torch.tensor(record.probe)
    difference = float((backbone.probe[: len(probe)] - probe).abs().max())
    if not difference <= PROBE_TOLERANCE * max(1.0, float(probe.abs().max())):
        raise InputError(
            f"backbone {record.spec}: its features of a test image differ by {difference:.2g} from those of the "
            "feature set (another version of the library, layer or preprocessing); extract again"
        )
    return backbone
