"""Evaluate classifiers on a held-out set."""

from pathlib import Path
from typing import Annotated, Any

import typer

from .app import app
from .shared import ImageColumn, Json, LabelColumn, Preprocessing, Provider, Strict, Threads, end_with

UNMEASURED = 1


def _numbers(text: Any) -> tuple[int, ...]:
    """``1,5`` as numbers; a default comes as numbers already."""
    if not isinstance(text, str):
        return tuple(text)
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} found, expected whole numbers such as 1,5") from None


@app.command()
def evaluate(
    models: Annotated[
        list[str],
        typer.Argument(
            help="Bundles; ONNX, TorchScript or .pt2 files; folders of these; lite0; timm:NAME or "
            "torchvision:NAME, also as patterns; hf:USER/REPO; a zoo.yaml, or zoo:NAME."
        ),
    ],
    data: Annotated[
        str,
        typer.Option(
            help="Held-out images: class folders, or a `datasets` name or path; a folder of images with --truth; for "
            "heads alone a feature set."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Results folder.", show_default="results/DATA")] = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            help="Right classes of images without class folders: a CSV file (file name, class), a line an image, or "
            "ReaL's real.json."
        ),
    ] = None,
    class_ids: Annotated[
        str | None,
        typer.Option(help="What numbered classes are: a file of `id name` lines, the devkit's meta.mat, imagenet-1k."),
    ] = None,
    group_column: Annotated[
        str | None, typer.Option(help="Column of --truth, or of a `datasets` source, with the group of an image.")
    ] = None,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    preprocessing: Preprocessing = None,
    labels: Annotated[
        str | None,
        typer.Option(help="Classes of ONNX files that do not say them: a text file, or a set such as imagenet-1k."),
    ] = None,
    background: Annotated[int | None, typer.Option(help="The output of such files that is no class.")] = None,
    output: Annotated[str | None, typer.Option(help="The output of such files with the scores.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Local weights of a timm: or torchvision: network.")] = None,
    k: Annotated[Any, typer.Option(parser=_numbers, metavar="K,K,...", help="Top-k for these k.")] = (1, 5),
    provider: Provider = "cpu",
    allow_fallback: Annotated[
        bool, typer.Option("--allow-fallback", help="Let the CPU run nodes that the provider cannot; they are counted.")
    ] = False,
    batch_size: Annotated[int, typer.Option(help="Images a run of the session.")] = 64,
    threads: Threads = None,
    speed: Annotated[bool, typer.Option("--speed", help="Time longer, and at batch sizes 1 to 256.")] = False,
    against: Annotated[str | None, typer.Option(help="torch: run every classifier there too, and count flips.")] = None,
    save_logits: Annotated[bool, typer.Option(help="Keep all logits too.")] = False,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Measure classifiers as they are deployed, on one held-out set.

    Status 1 where one could not be measured, 4 where the answers of one are no better than guesses.
    """
    from ..evaluate import evaluate_classifiers
    from ..show_results import show_results

    results = evaluate_classifiers(
        models,
        data=data,
        out=out,
        truth=truth,
        class_ids=class_ids,
        group_column=group_column,
        image_column=image_column,
        label_column=label_column,
        preprocessing=preprocessing,
        labels=labels,
        background=background,
        output=output,
        checkpoint=checkpoint,
        k=k,
        provider=provider,
        allow_fallback=allow_fallback,
        batch_size=batch_size,
        threads=threads,
        speed=speed,
        against=against,
        save_logits=save_logits,
        strict=strict,
    )
    show_results(results, json)
    if results.failed:
        raise typer.Exit(UNMEASURED)
    end_with(any(result.worthless for result in results))
