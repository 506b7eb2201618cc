"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from ..core.coded_warnings import STATUS

Bundle = Annotated[
    str, typer.Argument(help="Bundle that `headsmith export` made, or hf:USER/REPO on the Hugging Face hub.")
]
Out = Annotated[Path, typer.Option(help="Folder to make.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a folder that exists.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Provider = Annotated[
    str,
    typer.Option(
        help="onnxruntime's execution provider: cpu, cuda, tensorrt, openvino, ... as this onnxruntime has it, or a "
        "YAML file with its options. It runs, or it is an error."
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        help="onnxruntime's threads; at most 64, or the machine's cores.", show_default="the cores this process may use"
    ),
]
ImageColumn = Annotated[str | None, typer.Option(help="Image column of a `datasets` source.")]
LabelColumn = Annotated[str | None, typer.Option(help="Label column of a `datasets` source.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first unreadable image instead of reporting it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Preprocessing = Annotated[
    Path | None, typer.Option(help="YAML file with the recipe of an ONNX file that does not say it itself.")
]
Layer = Annotated[
    str | None, typer.Option(help="Last layer of an ONNX file.", show_default="the one that its output comes from")
]
DropBackground = Annotated[
    bool, typer.Option("--drop-background", help="The first output of an ONNX file is no class.")
]


def end_with(worthless: bool) -> None:
    """End with the status of a result that says nothing, where that is so."""
    if worthless:
        raise typer.Exit(STATUS)
