"""Heads: train and sweep."""

from pathlib import Path
from typing import Annotated, Any

import typer

from .app import app
from .shared import Json, Out, Overwrite, end_with


def _weights(text: str, flag: str) -> tuple[float, ...]:
    try:
        return tuple(float(weight) for weight in text.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} found, expected numbers between commas such as .5,0,0,0,.5", param_hint=flag
        ) from None


def _setting(text: str, default: str) -> Any:
    """An option that, left out, leaves the choice to the settings file and then to the default in words."""
    return typer.Option(help=text, show_default=default)


def _choice(text: str | None) -> str | tuple[float, ...] | None:
    return text if text is None or text[:1].isalpha() else _weights(text, "--select")


@app.command()
def train(
    features: Annotated[Path, typer.Argument(help="Feature set that `headsmith extract` or `import` made.")],
    out: Out,
    preset: Annotated[
        str | None,
        typer.Option(help="Published settings: paper/imagenet1k, paper/imagenet21k, paper/cifar100; all else wins."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file with settings; flags win over it.")] = None,
    loss: Annotated[
        str | None,
        _setting(
            "softmax (cross-entropy), neuralsort, softsort, sinkhorn, odd_even, bitonic or splitter_selection.",
            "softmax",
        ),
    ] = None,
    p_k: Annotated[str | None, _setting("Weights of top-1, top-2, ...: .5,0,0,0,.5.", "the loss's")] = None,
    m: Annotated[
        int | None, _setting("Highest scores of a row that enter the relaxation; the classes or more: all.", "16")
    ] = None,
    inverse_temperature: Annotated[float | None, _setting("Sharpness of the relaxation.", "the loss's")] = None,
    distribution: Annotated[
        str | None,
        _setting(
            "Of a network's comparators: logistic, logistic_phi, cauchy, gaussian, reciprocal or optimal.",
            "logistic_phi",
        ),
    ] = None,
    art_lambda: Annotated[float | None, _setting("Lambda of logistic_phi.", "0.5")] = None,
    top1_mode: Annotated[str | None, _setting("How top-1 enters the loss: smce, sm or sort.", "smce")] = None,
    softmax_over: Annotated[
        str | None, _setting("What its softmax runs over: candidates or classes.", "candidates")
    ] = None,
    label_smoothing: Annotated[
        float | None, _setting("Share of the cross-entropy with uniform targets.", "0.0")
    ] = None,
    head: Annotated[str | None, _setting("linear, norm_linear, cosine or mlp.", "linear")] = None,
    norm: Annotated[str | None, _setting("What norm_linear does first: standard, layer or unit.", "standard")] = None,
    hidden: Annotated[int | None, _setting("Units in the hidden layer of mlp.", "2048")] = None,
    start: Annotated[
        str | None,
        _setting(
            "random (small), zeros, backbone (its own classifier, by name), backbone-in-order, or a run folder.",
            "random",
        ),
    ] = None,
    optimizer: Annotated[str | None, _setting("adam, adamw, sgd, or lbfgs on the full batch.", "adam")] = None,
    learning_rate: Annotated[
        float | None, _setting("The optimiser's step size.", "the loss's, for features of this size")
    ] = None,
    weight_decay: Annotated[float | None, _setting("L2 penalty; decay for adamw.", "0.0")] = None,
    momentum: Annotated[float | None, _setting("Of sgd.", "0.9")] = None,
    warmup: Annotated[float | None, _setting("Epochs over which the step size rises.", "0.0")] = None,
    schedule: Annotated[str | None, _setting("Of the step size: constant or cosine.", "constant")] = None,
    dropout: Annotated[float | None, _setting("Share of feature entries set to 0 in training.", "0.0")] = None,
    noise: Annotated[
        float | None, _setting("Gaussian noise on features, in units of their root mean square.", "0.0")
    ] = None,
    balanced: Annotated[
        bool | None, typer.Option("--balanced/--no-balanced", help="Draw every class equally often.", show_default="no")
    ] = None,
    averaging: Annotated[float | None, _setting("Decay of the moving average of the weights.", "0.0")] = None,
    select: Annotated[
        str | None, _setting("What chooses the epoch: p_k, top1, top5, or weights such as .5,0,0,0,.5.", "p_k")
    ] = None,
    epochs: Annotated[int | None, _setting("Passes over the training split, at most.", "100, or 3,000 steps")] = None,
    batch_size: Annotated[int | None, _setting("Rows a step, over all processes.", "512")] = None,
    patience: Annotated[int | None, _setting("Epochs without a better validation score.", "10, or 300 steps")] = None,
    seed: Annotated[int | None, _setting("Fixes the order of the rows, and what is drawn.", "0")] = None,
    device: Annotated[str | None, _setting("auto, cpu or cuda.", "auto")] = None,
    gpu_memory: Annotated[
        float | None,
        typer.Option(help="GB that features may take on a GPU; more are streamed.", show_default="what is free"),
    ] = None,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard's curves.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Train a head on a feature set; status 4 where it is no better than guesses."""
    settings = {
        "loss": loss,
        "p_k": None if p_k is None else _weights(p_k, "--p-k"),
        "m": m,
        "inverse_temperature": inverse_temperature,
        "distribution": distribution,
        "art_lambda": art_lambda,
        "top1_mode": top1_mode,
        "softmax_over": softmax_over,
        "label_smoothing": label_smoothing,
        "head": head,
        "norm": norm,
        "hidden": hidden,
        "start": start,
        "optimizer": optimizer,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "momentum": momentum,
        "warmup": warmup,
        "schedule": schedule,
        "dropout": dropout,
        "noise": noise,
        "balanced": balanced,
        "averaging": averaging,
        "select": _choice(select),
        "epochs": epochs,
        "batch_size": batch_size,
        "patience": patience,
        "seed": seed,
        "device": device,
    }
    from ..show import show_run
    from ..trainer import train as run

    given: Any = {name: value for name, value in settings.items() if value is not None}
    made = run(
        features,
        out=out,
        preset=preset,
        config=config,
        gpu_memory=gpu_memory,
        tensorboard=tensorboard,
        overwrite=overwrite,
        **given,
    )
    show_run(made)
    end_with(made.worthless)


@app.command()
def sweep(
    features: Annotated[Path, typer.Argument(help="Feature set with a validation split.")],
    out: Out,
    config: Annotated[
        Path | None,
        typer.Option(help="YAML file: the settings of `train`, each a value or a list of values; see docs/sweeps.md."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="Published settings under those of --config, or alone the grid of their tables."),
    ] = None,
    device: Annotated[str | None, _setting("auto, cpu or cuda.", "the file's, else auto")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Train a grid of heads side by side, keep the best on validation; status 4 where it is no better than guesses."""
    from ..show_sweep import show_sweep
    from ..trainer.sweep import sweep as run

    made = run(features, out=out, config=config, preset=preset, device=device, overwrite=overwrite)
    show_sweep(made, json)
    end_with(made.worthless)
