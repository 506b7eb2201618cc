"""What classifiers answer: predict, and evaluate on a held-out set."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..evaluate.options import EvaluationOptions
from .app import app
from .options import options_of
from .shared import Bundle, Json, Provider, Threads, end_with

UNREADABLE, UNMEASURED = 1, 1


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
