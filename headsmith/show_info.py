"""What a person sees of a file."""

import dataclasses
from typing import TYPE_CHECKING, Any

from rich.table import Column, Table

from .core.terminal import escape
from .show import LISTED, console, show_json

if TYPE_CHECKING:
    from .export.bundle.file_info import FileInfo


def show_info(info: "FileInfo", as_json: bool) -> None:
    """One row a fact, of one line or several; of long lists of labels the first."""
    if as_json:
        show_json(dataclasses.asdict(info))
        return
    table = Table("", Column(overflow="fold"), show_header=False)
    rows = {"bytes": [f"{info.bytes:,}"], "sha256": [info.sha256]} | _graph(info.graph or {}) | _metadata(info.metadata)
    for name, value in rows.items():
        table.add_row(escape(name), "\n".join(escape(line) for line in value))
    console.print(f"[bold]{escape(info.path)}[/]")
    console.print(table)


def _graph(graph: dict[str, Any]) -> dict[str, list[str]]:
    if not graph:
        return {}
    layer = graph["last_layer"]
    found = layer.get("not_found") or (
        f"{layer['name']} ({layer['operator']}), {layer['features']:,} features to {layer['outputs']:,} outputs, then "
        f"{('no softmax', 'a softmax', 'two softmaxes')[min(2, layer['softmaxes'])]}"
    )
    return {
        "inputs": _values(graph["inputs"]),
        "outputs": _values(graph["outputs"]),
        "opset": [", ".join(f"{domain} {version}" for domain, version in graph["opsets"].items())],
        "IR version": [str(graph["ir_version"])],
        "producer": [graph["producer"] or "not said"],
        "parameters": [f"{graph['parameters']:,}"],
        "last layer": [found],
    }


def _values(values: list[dict[str, Any]]) -> list[str]:
    return [f"{value['name']} {value['dtype']} {value['shape']}" for value in values]


def _metadata(metadata: dict[str, Any]) -> dict[str, list[str]]:
    return {name: _lines(value) for name, value in metadata.items()}


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}: {line}" for key, one in value.items() for line in _lines(one)]
    if isinstance(value, list):
        more = f" ... and {len(value) - LISTED:,} more (--json has all)" if len(value) > LISTED else ""
        return [", ".join(str(one) for one in value[:LISTED]) + more]
    return [str(value)]
