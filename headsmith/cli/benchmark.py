"""Which classifier to deploy: many backbones, one leaderboard."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..evaluate.benchmark.options import BenchmarkOptions
from .app import app
from .options import options_of
from .shared import Json

FAILED = 1


@app.command(several=True)
@options_of(BenchmarkOptions, left_out=True, last=("yes", "json"))
def benchmark(
    images: Annotated[str, typer.Argument(help="Folder of class folders, or a `datasets` folder or name.")],
    out: Annotated[Path, typer.Option(help="The benchmark's folder; what it holds already is used again.")],
    backbones: Annotated[
        list[str] | None,
        typer.Option(help="Lists, patterns, names and folders of ONNX files, as `headsmith backbones` takes them."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML file with backbones and settings; flags win over it.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="More than 50 backbones are meant.")] = False,
    json: Json = False,
    **settings: Any,
) -> None:
    """Say which classifier to deploy: train heads on many backbones, export them, and measure every file.

    Status 1 where one failed.
    """
    from ..evaluate.benchmark import benchmark as run
    from ..show_benchmark import show_benchmark

    found = run(images, out=out, backbones=backbones or [], config=config, yes=yes, **settings)
    show_benchmark(found, json)
    if found.failed:
        raise typer.Exit(FAILED)
