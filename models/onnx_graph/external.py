"""The tensors of an ONNX file, wherever in the model they belong, and the files beside it that hold some of them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto

from ...core.errors import DamagedFileError
from .tensor_sizes import check_size

IN_MEMORY = "_ORT_MEM_ADDR_"  # onnxruntime takes the offset for an address in memory where a location says so


def external_files(model: ModelProto, path: Path) -> list[Path]:
    """The files that a model's weights lie in: those of its graph, of attributes, subgraphs, functions and training.

    All tensors are checked on the way, those in the file too: each has as many numbers as its shape says.

    Args:
        model: The model, its external data not loaded.
        path: Its file.

    Returns:
        Each file once, by name.

    Raises:
        DamagedFileError: One is missing, no regular file, outside of the model's folder, or shorter than what the
            model reads of it; or a tensor has another number of numbers.
    """
    files = set()
    for tensor in tensors_of(model):
        where = f"{path}: weights {tensor.name[:40]!r}"
        if tensor.data_location == TensorProto.EXTERNAL:
            files.add(_checked(tensor, path, where))
        else:
            check_size(tensor, where)
    return sorted(files)


def _checked(tensor: TensorProto, path: Path, where: str) -> Path:
    said: dict[str, str] = {entry.key: entry.value for entry in tensor.external_data}
    location = said.get("location", "")
    folder = path.resolve().parent
    file = folder / location
    if "\0" in location or IN_MEMORY in location or not location:
        raise DamagedFileError(f"{where}: lie in {location!r}, expected a file beside it; do not use it")
    if Path(location).is_absolute() or ".." in Path(location).parts or not file.resolve().is_relative_to(folder):
        raise DamagedFileError(f"{where}: lie in {location!r}, outside of the file's folder; do not use it")
    shown = path.parent / location
    if not file.is_file():
        what = "is no regular file" if file.exists() else "missing"
        raise DamagedFileError(f"{shown}: {what}, but {path.name} has weights in it; put it there")
    size = file.stat().st_size
    offset, length = (_count(said.get(key), where, key) for key in ("offset", "length"))
    if offset + length > size:
        raise DamagedFileError(
            f"{where}: end at byte {offset + length:,} of {shown.name}, which holds {size:,}; download it again"
        )
    check_size(tensor, where, length or size - offset)
    return shown


def _count(text: str | None, where: str, key: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) < len(str(2**63))):
        raise DamagedFileError(f"{where}: {key} {text[:40]!r} found, expected a number of bytes; download it again")
    return int(text)


def tensors_of(model: ModelProto) -> Iterator[TensorProto]:
    """All tensors of a model, those of attributes, subgraphs, functions and training among them."""
    yield from _of_graph(model.graph)
    for function in model.functions:
        yield from _of_nodes(function.node)
        yield from _of_attributes(function.attribute_proto)
    for training in model.training_info:
        yield from _of_graph(training.initialization)
        yield from _of_graph(training.algorithm)


def _of_graph(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    yield from _of_sparse(graph.sparse_initializer)
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        yield from _of_attributes(node.attribute)


def _of_attributes(attributes: Iterable[AttributeProto]) -> Iterator[TensorProto]:
    for attribute in attributes:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        if attribute.HasField("sparse_tensor"):
            yield from _of_sparse([attribute.sparse_tensor])
        yield from _of_sparse(attribute.sparse_tensors)
        for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            yield from _of_graph(graph)


def _of_sparse(tensors: Iterable[SparseTensorProto]) -> Iterator[TensorProto]:
    for tensor in tensors:
        yield from (tensor.values, tensor.indices)
