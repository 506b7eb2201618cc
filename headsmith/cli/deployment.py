"""Classifiers: export, verify, evaluate and predict."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..export.options import ExportOptions
from .app import app
from .options import options_of
from .shared import Bundle, Json, Out, Provider, Threads

UNREADABLE = 1


@app.command()
@options_of(ExportOptions)
def export(
    run: Annotated[Path, typer.Argument(help="Run folder that `headsmith train` made.")], out: Out, **options: Any
) -> None:
    """Write a classifier as files, and prove that each answers as the Python module does."""
    from ..export import export_classifier
    from ..show import show_bundle

    show_bundle(export_classifier(run, out=out, **options))


@app.command()
def verify(
    bundle: Bundle,
    data: Annotated[
        str | None,
        typer.Option(
            help="The held-out images of the export, for a head alone the feature set.",
            show_default="the few inputs in the bundle",
        ),
    ] = None,
    provider: Provider = "cpu",
    batch_size: Annotated[int, typer.Option(help="Images a run.")] = 64,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Check a bundle's hashes, and that its files answer here as they did when they were exported."""
    from ..export import verify as run
    from ..show_verification import show_verification

    found = run(bundle, data=data, provider=provider, batch_size=batch_size, threads=threads)
    show_verification(found, json)
    found.check()


@app.command()
def predict(
    bundle: Bundle,
    images: Annotated[list[Path], typer.Argument(help="Image files, or folders of them.")],
    k: Annotated[int, typer.Option(help="Labels an image.")] = 5,
    provider: Provider = "cpu",
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Name the best labels of images; status 1 where a file could not be read."""
    from ..evaluate import predict as run
    from ..show import show_predictions

    found = run(bundle, images, k=k, provider=provider, threads=threads)
    show_predictions(found, json)
    if any(one.error is not None for one in found):
        raise typer.Exit(UNREADABLE)
