"""Classifiers as files: export and verify."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..export.options import ExportOptions
from .app import app
from .options import options_of
from .shared import Bundle, Json, Out, Provider, Threads


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
