"""ONNX files of any origin: graft and info."""

from pathlib import Path
from typing import Annotated

import typer

from .app import app
from .deployment import InputFormat
from .shared import Json, Layer, Out, Overwrite, Preprocessing


@app.command()
def graft(
    file: Annotated[Path, typer.Argument(help="ONNX classifier.")],
    head: Annotated[Path, typer.Option(help="Run folder of a head on features of that file.")],
    out: Out,
    preprocessing: Preprocessing = None,
    layer: Layer = None,
    input_format: Annotated[
        InputFormat, typer.Option("--input", help="What the new file takes: RGB in 0..255, resized and cropped.")
    ] = InputFormat.float_nchw,
    opset: Annotated[int, typer.Option(help="ONNX operator set.")] = 18,
    data: Annotated[
        str | None, typer.Option(help="Held-out images for the proof.", show_default="the run's test split")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Replace the last layer of an ONNX classifier by a trained head, and prove the new file."""
    from ..export import graft as run
    from ..show import show_bundle

    show_bundle(
        run(
            file,
            head=head,
            out=out,
            preprocessing=preprocessing,
            layer=layer,
            input_format=input_format.value,
            opset=opset,
            data=data,
            overwrite=overwrite,
        )
    )


@app.command()
def info(
    path: Annotated[Path, typer.Argument(help="Any ONNX file, another exported file, or a bundle.", metavar="FILE")],
    json: Json = False,
) -> None:
    """Say what is in a file: inputs, outputs, last layer, labels, preprocessing, hashes."""
    from ..export import file_info
    from ..show_info import show_info

    show_info(file_info(path), json)
