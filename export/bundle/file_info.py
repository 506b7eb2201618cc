"""What an exported file, or any ONNX file, says of itself."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.arguments import typed
from ...core.errors import InputError
from ...core.files import parse_json, sha256_file
from ...core.json_values import JsonObject
from ..runtime import open_model
from .bundle import Bundle
from .manifest import MANIFEST

if TYPE_CHECKING:
    from .graph_info import GraphInfo


@dataclass(frozen=True)
class FileInfo:
    """A file.

    Attributes:
        path: The file.
        bytes: Its size, that of its external data included.
        sha256: Of the file itself.
        metadata: What it says of itself: headsmith's are labels, preprocessing, hashes, ...; of other files whatever
            they carry.
        graph: Of an ONNX file; else ``None``.
    """

    path: str
    bytes: int
    sha256: str
    metadata: JsonObject
    graph: "GraphInfo | None"


@typed
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
    from ...models.onnx_graph import BESIDE, read_onnx
    from .graph_info import describe_graph

    graph = read_onnx(path)
    size = sum(file.stat().st_size for file in {path, *graph.meta[BESIDE]})
    return FileInfo(
        str(path), size, sha256_file(path), _decoded(graph.metadata_props), describe_graph(graph, str(path))
    )


def _decoded(strings: dict[str, str]) -> JsonObject:
    return {key: _parsed(text) for key, text in strings.items()}


def _parsed(text: str) -> Any:
    """A list or an object as such, any other text as it is."""
    try:
        value = parse_json(text)
    except ValueError:  # too long a number, or too deep
        return text
    return value if isinstance(value, list | dict) else text
