"""What this machine can do: doctor, backbones and demo."""

from pathlib import Path
from typing import Annotated

import typer

from .app import app
from .shared import Json


@app.command()
def doctor(json: Json = False) -> None:
    """Versions, CPU and GPU, and the execution providers that really load."""
    from ..doctor import examine, show

    show(examine(), json)


@app.command()
def backbones(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Lists of headsmith; names as --backbone takes them; patterns such as 'timm:resnet*' or '*dinov3*'; "
            "onnx:FOLDER; YAML files of these.",
            show_default="all lists",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List backbones: size, features, published accuracy, and whether the weights are on this machine."""
    from ..models import list_backbones as run
    from ..show_backbones import show_backbones

    show_backbones(run(names), json)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything the demo makes.")] = Path("demo"),
    quick: Annotated[bool, typer.Option("--quick", help="100 characters in place of 1,000.")] = False,
) -> None:
    """Glyphs from matplotlib's fonts to two measured classifiers: the whole way, with nothing to download."""
    from ..demo.demo import QUICK, run_demo
    from ..demo.glyphs import LARGEST

    run_demo(out, classes=QUICK if quick else LARGEST)
