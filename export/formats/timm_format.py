"""A folder that timm opens: ``timm.create_model("local-dir:BUNDLE")`` is the fine-tuned classifier."""

import copy
import json
import time
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from ...core.errors import DamagedFileError, InputError
from ...core.files import read_json, write_json
from ...core.json_values import JsonObject
from ...core.safetensors_bytes import in_order
from ...models.execution_provider import ExecutionProvider
from ...models.heads import Linear
from ...models.preprocessing_layers import Normalize
from ...models.runtime_settings import RuntimeSettings
from ..classifier import Classifier, answer
from ..errors import cause
from ..metadata import Metadata, describe
from ..runtime import Array, Model, Outputs
from .torch_device import on_device, torch_device

CONFIG = "config.json"


def write_timm(classifier: Classifier, metadata: Metadata, path: Path) -> None:
    """Write ``model.safetensors`` and, beside it, ``config.json``.

    timm's network takes normalised images; mean, deviation, resize and crop are in its ``pretrained_cfg``.

    Args:
        classifier: A backbone of timm with a linear head. A network with two heads, whose mean is its answer, gets the
            head in both; a normalisation in front of one becomes the identity.
        metadata: Labels and preprocessing.
        path: ``model.safetensors`` in the bundle.

    Raises:
        InputError: Another backbone, or a head that is more than one linear layer.
    """
    from timm.models._hub import save_config_for_hf

    network = _network(classifier, metadata)
    tensors = {name: tensor.contiguous().clone() for name, tensor in network.state_dict().items()}
    path.write_bytes(in_order(safetensors.torch.save(tensors, {"format": "pt", **metadata.to_strings()})))
    config = path.with_name(CONFIG)
    save_config_for_hf(network, str(config), _labels(metadata), data_config=_preprocessing(metadata))
    stated = read_json(config)
    stated.get("model_args", {}).pop("num_classes", None)  # it stands outside too, and transformers takes it from both
    write_json(config, stated)


def check_timm(classifier: Classifier, metadata: Metadata) -> None:
    """Raise an `InputError` for a classifier that `write_timm` cannot write."""
    _network(classifier, metadata)


def _network(classifier: Classifier, metadata: Metadata) -> Any:
    """A copy of the backbone's network with the head as its classifier."""
    backbone = classifier.backbone
    spec = metadata.backbone.spec if backbone else "a head alone"
    if backbone is None or not hasattr(backbone.network, "reset_classifier"):
        raise InputError(f"--format timm: {spec} found, expected a classifier on lite0 or timm:NAME; use --format onnx")
    if not isinstance(classifier.head, Linear):
        raise InputError(
            f"--format timm: a {metadata.head} head is not one linear layer, as timm's classifiers are; "
            "use --format onnx, or train with --head linear"
        )
    network: Any = copy.deepcopy(backbone.network)
    network.reset_classifier(classifier.head.num_classes)
    network.eval()
    found = network.get_classifier()
    parts = found if isinstance(found, tuple) else (found,)
    with torch.no_grad():
        for layer in (module for part in parts for module in part.modules()):
            if isinstance(layer, nn.BatchNorm1d):
                _make_identity(layer)
            if isinstance(layer, nn.Linear) and layer.weight.shape == classifier.head.weight.shape:
                layer.weight.copy_(classifier.head.weight)
                layer.bias.copy_(classifier.head.bias)
        pattern = backbone.pattern()
        wanted = classifier.head(backbone(pattern))
        answer = network(pattern)
    if answer.shape != wanted.shape or not torch.allclose(answer, wanted, rtol=1e-3, atol=1e-3):
        kinds = " and ".join(type(part).__name__ for part in parts)
        raise InputError(
            f"--format timm: {spec} has a {kinds} as classifier, which one linear layer cannot take the place of; "
            "export it as onnx, torchscript, pt2 or triton"
        )
    return network


def _make_identity(norm: nn.BatchNorm1d) -> None:
    norm.reset_running_stats()
    if norm.affine and norm.running_var is not None:
        norm.weight.copy_((norm.running_var + norm.eps).sqrt())
        norm.bias.zero_()


def _labels(metadata: Metadata) -> JsonObject:
    return {"label_names": list(metadata.labels), "label_descriptions": describe(metadata.labels)}


def _preprocessing(metadata: Metadata) -> JsonObject:
    recipe = metadata.recipe
    return {
        "input_size": (3, *recipe.crop_size),
        "interpolation": recipe.interpolation,
        "crop_pct": recipe.crop_pct,
        "crop_mode": "squash" if recipe.resize_mode == "exact" else "center",
        "mean": recipe.mean,
        "std": recipe.std,
    }


class TimmModel(Model):
    """The folder as timm opens it: normalisation, its network, and the rule for ties."""

    probabilities = False

    def __init__(self, path: Path, provider: ExecutionProvider, threads: int) -> None:
        import timm

        self.path, self.provider = path, provider
        self._device = torch_device(provider)
        start = time.perf_counter()
        try:
            with safe_open(path, framework="pt") as file:
                strings = file.metadata() or {}
            self.metadata = Metadata.from_strings(strings, str(path))
            network = timm.create_model(f"local-dir:{path.parent}", pretrained=True)
        except (SafetensorError, OSError, RuntimeError, KeyError, json.JSONDecodeError) as error:
            raise DamagedFileError(f"{path}: timm cannot open it ({cause(error)}); export it again") from None
        self._network = nn.Sequential(Normalize(self.metadata.recipe), network).eval().to(self._device)
        self.load_seconds = time.perf_counter() - start
        torch.set_num_threads(threads)
        self.settings = RuntimeSettings(f"timm {timm.__version__}", str(provider), threads)

    def feed(self, inputs: Array) -> Array:
        """Pixels ``(N, 3, H, W)``: timm's networks take nothing else."""
        return inputs.transpose(0, 3, 1, 2)

    @torch.inference_mode()
    def answer(self, fed: Array) -> Outputs:
        """Run the network."""
        return Outputs.of(answer(self._network(on_device(fed, self._device))))
