"""Heads: train and sweep."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..trainer.train_config import TrainConfig
from .app import app
from .options import options_of
from .shared import Json, Out, Overwrite, end_with


@app.command()
@options_of(TrainConfig, left_out=True, last=("gpu_memory", "tensorboard", "overwrite"))
def train(
    features: Annotated[Path, typer.Argument(help="Feature set that `headsmith extract` or `import` made.")],
    out: Out,
    preset: Annotated[
        str | None,
        typer.Option(help="Published settings: paper/imagenet1k, paper/imagenet21k, paper/cifar100; all else wins."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file with settings; flags win over it.")] = None,
    gpu_memory: Annotated[
        float | None,
        typer.Option(help="GB that features may take on a GPU; more are streamed.", show_default="what is free"),
    ] = None,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard's curves.")] = None,
    overwrite: Overwrite = False,
    **settings: Any,
) -> None:
    """Train a head on a feature set; status 4 where it is no better than guesses."""
    from ..show import show_run
    from ..trainer import train as run

    made = run(
        features,
        out=out,
        preset=preset,
        config=config,
        gpu_memory=gpu_memory,
        tensorboard=tensorboard,
        overwrite=overwrite,
        **settings,
    )
    show_run(made)
    end_with(made.worthless)


def _show_preset(name: str | None) -> None:
    if name is not None:
        from ..trainer.presets import preset_text

        typer.echo(preset_text(name, asked_by="--show-preset"), nl=False)
        raise typer.Exit


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
        typer.Option(
            help="quick, default, thorough, or published settings: the grid to train, or what is under --config.",
            show_default="default, without --config",
        ),
    ] = None,
    show_preset: Annotated[
        str | None,
        typer.Option(
            help="Print the file of a preset, which --config takes, and end.", callback=_show_preset, is_eager=True
        ),
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.", show_default="the file's, else auto")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Train a grid of heads side by side, keep the best on validation; status 4 where it is no better than guesses."""
    from ..show_sweep import show_sweep
    from ..trainer.sweep import sweep as run

    made = run(features, out=out, config=config, preset=preset, device=device, overwrite=overwrite)
    show_sweep(made, json)
    end_with(made.worthless)
