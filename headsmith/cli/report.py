"""What a results folder says: report and compare."""

from pathlib import Path
from typing import Annotated

import typer

from ..core.printable import printable
from .app import app
from .shared import Json


@app.command()
def report(
    results: Annotated[Path, typer.Argument(help="Folder that `headsmith evaluate` or `benchmark` made.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The page; replaces an older one, nothing else.", show_default="report.html in the results folder"
        ),
    ] = None,
) -> None:
    """Write one HTML page about all models of a results folder."""
    from ..evaluate.report import write_report as run
    from ..show import console

    console.print(printable(str(run(results, out=out))), markup=False)


@app.command()
def compare(
    first: Annotated[str, typer.Argument(help="A model in --results, or a folder with the results of one model.")],
    second: Annotated[str, typer.Argument(help="The other one.")],
    results: Annotated[Path, typer.Option(help="Folder that `headsmith evaluate` made.")] = Path("results"),
    out: Annotated[
        Path | None,
        typer.Option(help="CSV file for all inputs with different answers; replaces an older one, nothing else."),
    ] = None,
    json: Json = False,
) -> None:
    """Say which of two models is better, where, by how much, and whether that is real."""
    from ..evaluate.comparison import compare as run
    from ..show_comparison import show_comparison

    show_comparison(run(first, second, results=results, out=out), json)
