"""An ONNX classifier, cut before its last layer, as a frozen backbone."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import onnx_ir as ir
import onnxruntime
import torch
from torch import Tensor, nn

from ..core.errors import InputError
from ..core.files import parse_json
from ..core.typed_json import structured
from .backbone_sources import Source
from .class_names import ClassNames
from .execution_provider import provider_of
from .onnx_graph import affine_weights, cut, data_folder, find_last_layer, only_input, parameter_count, read_onnx
from .onnx_graph.layout import check_pixels, layout_of
from .onnx_graph.truncation import IMAGES
from .onnx_session import SessionErrors, open_session, short_reason
from .preprocessing import Preprocessing
from .preprocessing_layers import Normalize
from .recipe_file import read_recipe

PLACEHOLDER_DOMAIN, PLACEHOLDER = "headsmith", "Backbone"
ROW_TOLERANCE = 1e-3
INPUT_LAYOUTS = {"float-nchw": "nchw", "uint8-nhwc": "nhwc"}


class OnnxNetwork(nn.Module):
    """The cut graph under onnxruntime: normalised images to features ``(N, D)``.

    On a CUDA device the session runs there too; images and features go through the memory of the host. While a
    classifier is exported to ONNX a placeholder stands for it, which `headsmith.export` replaces by the graph.

    Attributes:
        graph: ``images`` to ``features``, see `headsmith.models.onnx_graph.cut`.
    """

    def __init__(self, graph: ir.Model, feature_dim: int, name: str) -> None:
        super().__init__()
        self.graph = graph
        self._feature_dim, self._name = feature_dim, name
        self._sessions: dict[str, onnxruntime.InferenceSession] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """It never changes, and sessions cannot be copied."""
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Features of normalised images, in the layout of the file."""
        if torch.onnx.is_in_onnx_export():
            shape = (images.shape[0], self._feature_dim)
            name = f"{PLACEHOLDER_DOMAIN}::{PLACEHOLDER}"
            return torch.onnx.ops.symbolic(name, (images,), dtype=torch.float32, shape=shape, version=1)
        tracing = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        if tracing or torch.compiler.is_exporting():
            raise InputError(f"--format: {self._name} is an ONNX file, which only onnx and triton can hold")
        session = self._session(images.device.type)
        try:
            (features,) = session.run(None, {IMAGES: images.to("cpu", torch.float32).contiguous().numpy()})
        except SessionErrors as error:
            raise InputError(f"{self._name}: cannot run images {tuple(images.shape)} ({short_reason(error)})") from None
        return torch.from_numpy(features).to(images.device)

    def _session(self, provider: str) -> onnxruntime.InferenceSession:
        if provider not in self._sessions:
            self._sessions[provider] = open_session(
                ir.to_proto(self.graph).SerializeToString(),
                provider_of(provider, "--device"),
                torch.get_num_threads(),
                name=self._name,
                data_folder=data_folder(self.graph),
                option="--device",
            )
        return self._sessions[provider]


def onnx_source(
    path: Path, preprocessing: str | Path | Preprocessing | None, layer: str | None, drop_background: bool
) -> Source:
    """Cut an ONNX classifier file before its last layer.

    Args:
        path: The file.
        preprocessing: A recipe, or the YAML file that holds one; ``None`` where the file carries headsmith's metadata.
        layer: The last layer, where it is not plain.
        drop_background: Leave the first output out of its own classifier: a background class.

    Raises:
        InputError: A file that cannot be used, a last layer that is not found, no recipe or one that does not fit, or
            a batch axis that cannot be freed.
    """
    model, where = read_onnx(path), str(path)
    images, last = only_input(model, where), find_last_layer(model, where, layer)
    recipe = _recipe(model, images, preprocessing, where)
    _check_size(images, recipe, where)
    check_pixels(images, recipe, where)
    weight, bias = affine_weights(model, last, where)
    identity = _hash(ir.convenience.extract(model.graph, [images], [last.inputs]))
    network = OnnxNetwork(cut(model, last, where), weight.shape[1], where)
    _check_rows(network, recipe, weight.shape[1], where)
    classes = slice(1 if drop_background else 0, None)
    own = _linear(weight[classes], bias[classes])
    return Source(
        network,
        _call,
        f"input of {last.name}{', pooled' if last.pools else ''}",
        recipe,
        own if last.is_affine else nn.Sequential(own),  # and more than that
        lambda: _labels(model, where),
        identity,
        parameter_count(network.graph),
    )


def _recipe(model: ir.Model, images: ir.Value, given: str | Path | Preprocessing | None, where: str) -> Preprocessing:
    shape = [None] * 4 if images.shape is None else [size if isinstance(size, int) else None for size in images.shape]
    if len(shape) != 4:
        raise InputError(
            f"{where}: input {images.name} has the shape {images.shape}, expected four axes with 3 channels"
        )
    layout = layout_of(shape)
    recipe = read_recipe(given, layout) if isinstance(given, str | Path) else given or _own_recipe(model, where)
    if layout not in (None, recipe.layout):
        raise InputError(f"{where}: input {images.name} {images.shape} is {layout}, the recipe says {recipe.layout}")
    return recipe


def _own_recipe(model: ir.Model, where: str) -> Preprocessing:
    """What headsmith's own files say: resize and crop; all else is in the file."""
    metadata = model.metadata_props
    layout = INPUT_LAYOUTS.get(metadata.get("input_format", ""))
    if layout is None or metadata.get("resize") == "True":
        raise InputError(
            f"{where}: does not say how images are preprocessed, and that is never guessed; write its recipe into a "
            "YAML file and name it with --preprocessing"
        )
    try:
        recipe = Preprocessing.from_dict(parse_json(metadata["preprocessing"]))
    except (KeyError, ValueError) as error:
        raise InputError(f"{where}: its own preprocessing is damaged ({error}); export it again") from None
    return replace(recipe, scale=1.0, mean=(0.0,) * 3, std=(1.0,) * 3, channel_order="rgb", layout=layout)


def _check_size(images: ir.Value, recipe: Preprocessing, where: str) -> None:
    shape = list(images.shape or [None] * 4)
    found = shape[2:] if recipe.layout == "nchw" else shape[1:3]
    for size, expected in zip(found, recipe.crop_size, strict=True):
        if isinstance(size, int) and size != expected:
            raise InputError(
                f"{where}: input {images.name} takes images of {found[0]} x {found[1]} pixels, the recipe crops "
                f"{recipe.crop_size[0]} x {recipe.crop_size[1]}; set crop_size in --preprocessing"
            )


def _check_rows(network: OnnxNetwork, recipe: Preprocessing, feature_dim: int, where: str) -> None:
    """Two images in one batch must have the features that they have alone."""
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, *recipe.crop_size), dtype=np.uint8)
    images = Normalize(recipe)(torch.from_numpy(pixels))
    alone = torch.cat([network(images[:1]), network(images[1:])])
    if alone.shape != (2, feature_dim):
        raise InputError(
            f"{where}: features of shape {tuple(alone.shape)} before a layer that takes {feature_dim}; name the last "
            "layer with --layer"
        )
    if not alone.isfinite().all():
        raise InputError(
            f"{where}: the backbone gives NaN or infinite features for images of noise; check its weights "
            "and its recipe"
        )
    try:
        together = network(images)
    except InputError as error:
        raise InputError(
            f"{where}: its batch is fixed and cannot be freed; export it with a free batch axis ({error})"
        ) from None
    if _alike(together, alone):
        return
    again = torch.cat([network(images[:1]), network(images[1:])])
    if not _alike(again, alone):
        raise InputError(
            f"{where}: gives other features at every run for the same images; export it without operators that draw "
            "random numbers"
        )
    raise InputError(
        f"{where}: the features of an image depend on those beside it in a batch, expected the same as alone; "
        "export it with a free batch axis, and without operators over the batch"
    )


def _alike(found: torch.Tensor, alone: torch.Tensor) -> bool:
    """Whether features are those of images alone, up to rounding."""
    scale = max(1.0, float(alone.abs().max()))
    return found.shape == alone.shape and float((found - alone).abs().max()) <= ROW_TOLERANCE * scale


def _hash(graph: ir.Graph) -> str:
    """SHA-256 over the weights and the nodes of a graph, in hexadecimal."""
    digest = hashlib.sha256()
    for name, value in sorted(graph.initializers.items()):
        if (tensor := value.const_value) is not None:
            digest.update(f"{name} {tensor.dtype} {tensor.shape}\n".encode())
            digest.update(tensor.tobytes())
    for node in graph:
        names = [[value and value.name for value in values] for values in (node.inputs, node.outputs)]
        digest.update(f"{node.domain} {node.op_type} {names}\n".encode())
        for _, attribute in sorted(node.attributes.items()):
            digest.update(ir.to_proto(attribute).SerializeToString(deterministic=True))
    return digest.hexdigest()


def _labels(model: ir.Model, where: str) -> ClassNames | None:
    labels = model.metadata_props.get("labels")
    if labels is None:
        return None
    try:
        found = structured(parse_json(labels), tuple[str, ...], f"{where}: labels", advice="export it again")
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{where}: its own labels are damaged ({error}); export it again") from None
    return (found,)


def _linear(weight: np.ndarray[Any, Any], bias: np.ndarray[Any, Any]) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], len(weight), device="meta")
    state = {"weight": torch.from_numpy(weight), "bias": torch.from_numpy(bias)}
    layer.load_state_dict(state, assign=True)
    return layer


def _call(network: nn.Module, images: Tensor) -> Tensor:
    features: Tensor = network(images)
    return features
