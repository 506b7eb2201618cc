"""ONNX files of any origin: graft and info."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..export.options import ExportOptions
from .app import app
from .options import options_of
from .shared import Json, Layer, Out, Preprocessing


@app.command()
@options_of(ExportOptions, only=("input_format", "opset", "data", "overwrite"))
def graft(
    file: Annotated[Path, typer.Argument(help="ONNX classifier.")],
    head: Annotated[Path, typer.Option(help="Run folder of a head on features of that file.")],
    out: Out,
    preprocessing: Preprocessing = None,
    layer: Layer = None,
    **options: Any,
) -> None:
    """Replace the last layer of an ONNX classifier by a trained head, and prove the new file."""
    from ..export import graft as run
    from ..show import show_bundle

    show_bundle(run(file, head=head, out=out, preprocessing=preprocessing, layer=layer, **options))


@app.command()
def info(
    path: Annotated[Path, typer.Argument(help="Any ONNX file, another exported file, or a bundle.", metavar="FILE")],
    json: Json = False,
) -> None:
    """Say what is in a file: inputs, outputs, last layer, labels, preprocessing, hashes."""
    from ..export import file_info
    from ..show_info import show_info

    show_info(file_info(path), json)
