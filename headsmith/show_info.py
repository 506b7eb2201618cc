"""What a person sees of a file."""

from typing import TYPE_CHECKING, Any

from rich.table import Column, Table

from .core.records import to_json
from .core.terminal import escape
from .keywords_as_flags import with_flags
from .show import LISTED, console, show_json

if TYPE_CHECKING:
    from .export.bundle.file_info import FileInfo
    from .export.bundle.graph_info import GraphInfo


def show_info(info: "FileInfo", as_json: bool) -> None:
    """One row a fact, of one line or several; of long lists of labels the first."""
    if as_json:
        show_json(to_json(info))
        return
    table = Table("", Column(overflow="fold"), show_header=False)
    rows = {"bytes": [f"{info.bytes:,}"], "sha256": [info.sha256]}
    rows |= _graph(info.graph) if info.graph else {}
    rows |= {name: _lines(value) for name, value in info.metadata.items()}
    for name, value in rows.items():
        table.add_row(escape(name), "\n".join(escape(line) for line in value))
    console.print(f"[bold]{escape(info.path)}[/]")
    console.print(table)


def _graph(graph: "GraphInfo") -> dict[str, list[str]]:
    return {
        "inputs": [str(value) for value in graph.inputs],
        "outputs": [str(value) for value in graph.outputs],
        "opset": [", ".join(f"{domain} {version}" for domain, version in graph.opsets.items())],
        "IR version": [str(graph.ir_version)],
        "producer": [graph.producer or "not said"],
        "parameters": [f"{graph.parameters:,}"],
        "last layer": [with_flags(str(graph.last_layer))],
    }


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}: {line}" for key, one in value.items() for line in _lines(one)]
    if isinstance(value, list):
        more = f" ... and {len(value) - LISTED:,} more (--json has all)" if len(value) > LISTED else ""
        return [", ".join(str(one) for one in value[:LISTED]) + more]
    return [str(value)]
