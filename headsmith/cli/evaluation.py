"""Evaluate classifiers on a held-out set."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..evaluate.options import EvaluationOptions
from .app import app
from .options import options_of
from .shared import Json, end_with

UNMEASURED = 1


@app.command(several=True)
@options_of(EvaluationOptions, last=("json",))
def evaluate(
    models: Annotated[
        list[str],
        typer.Argument(
            help="Bundles; ONNX, TorchScript or .pt2 files; folders of these; lite0; timm:NAME or "
            "torchvision:NAME, also as patterns; hf:USER/REPO; a zoo.yaml, or zoo:NAME."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Results folder.", show_default="results/DATA")] = None,
    json: Json = False,
    **options: Any,
) -> None:
    """Measure classifiers as they are deployed, on one held-out set.

    Status 1 where one could not be measured, 4 where the answers of one are no better than guesses.
    """
    from ..evaluate import evaluate_classifiers
    from ..show_results import show_results

    results = evaluate_classifiers(models, out=out, **options)
    show_results(results, json)
    if results.failed:
        raise typer.Exit(UNMEASURED)
    end_with(any(result.worthless for result in results))
