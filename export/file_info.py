"""What an exported file, or any ONNX file, says of itself."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir

from ..models.errors import InputError
from ..models.files import sha256_file
from ..models.onnx_graph import affine_weights, find_last_layer, parameter_count, read_onnx
from .bundle import MANIFEST, Bundle
from .formats import open_model


@dataclass(frozen=True)
class FileInfo:
    """A file, as JSON values.

    Attributes:
        path: The file.
        bytes: Its size, that of its external data included.
        sha256: Of the file itself.
        metadata: What it says of itself: headsmith's are labels, preprocessing, hashes, ...; of other files whatever
            they carry.
        graph: Of an ONNX file ``inputs``, ``outputs``, ``opsets``, ``ir_version``, ``producer``, ``parameters`` and
            ``last_layer``; else ``None``.
    """

    path: str
    bytes: int
    sha256: str
    metadata: dict[str, Any]
    graph: dict[str, Any] | None


def file_info(path: str | Path) -> FileInfo:
    """Look into a file without running it.

    Args:
        path: Any ONNX file, another file that headsmith exported, or a bundle, of which the ONNX file is taken.

    Raises:
        InputError: The file is missing or damaged, or of another kind.
    """
    path = Path(path)
    if (path / MANIFEST).is_file():
        path = path / next(iter(Bundle.load(path).model_files.values()))
    elif path.is_dir():
        raise InputError(f"{path}: is no bundle (no {MANIFEST} in it); name a bundle or a file")
    if path.suffix != ".onnx":
        model = open_model(path)
        return FileInfo(str(path), path.stat().st_size, sha256_file(path), _decoded(model.metadata.to_strings()), None)
    graph = read_onnx(path)
    external = {Path(tensor.path) for tensor in _tensors(graph) if isinstance(tensor, ir.ExternalTensor)}
    size = sum(file.stat().st_size for file in {path, *external})
    return FileInfo(str(path), size, sha256_file(path), _decoded(graph.metadata_props), _describe(graph, str(path)))


def _tensors(graph: ir.Model) -> list[Any]:
    return [value.const_value for value in graph.graph.initializers.values()]


def _decoded(strings: dict[str, str]) -> dict[str, Any]:
    return {key: _parsed(text) for key, text in strings.items()}


def _parsed(text: str) -> Any:
    """A list or an object as such, any other text as it is."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if isinstance(value, list | dict) else text


def _describe(model: ir.Model, where: str) -> dict[str, Any]:
    graph = model.graph
    return {
        "inputs": [_value(value) for value in graph.inputs if not value.is_initializer()],
        "outputs": [_value(value) for value in graph.outputs],
        "opsets": {domain or "ai.onnx": version for domain, version in model.opset_imports.items()},
        "ir_version": model.ir_version,
        "producer": " ".join(filter(None, (model.producer_name, model.producer_version))) or None,
        "parameters": parameter_count(model),
        "last_layer": _last_layer(model, where),
    }


def _value(value: ir.Value) -> dict[str, Any]:
    shape = None if value.shape is None else [size if isinstance(size, int) else str(size) for size in value.shape]
    return {"name": value.name, "dtype": None if value.dtype is None else value.dtype.name.lower(), "shape": shape}


def _last_layer(model: ir.Model, where: str) -> dict[str, Any]:
    """What `find_last_layer` finds, or why it finds nothing."""
    try:
        layer = find_last_layer(model, where)
    except InputError as error:
        return {"not_found": str(error)}
    weight, _ = affine_weights(model, layer)
    return {
        "name": layer.name,
        "operator": layer.node.op_type,
        "features": weight.shape[1],
        "outputs": weight.shape[0],
        "softmaxes": layer.softmaxes,
    }
