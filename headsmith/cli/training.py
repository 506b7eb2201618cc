"""Training: train, finetune and sweep."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..command_errors import GIVEN
from ..trainer.finetuning.settings import FinetuneConfig
from ..trainer.train_config import TrainConfig
from .app import app
from .options import options_of
from .shared import ImageColumn, Json, LabelColumn, Out, Overwrite, end_with


@app.command()
@options_of(TrainConfig, left_out=True, last=("gpu_memory", "tensorboard", "overwrite"))
def train(
    features: Annotated[Path, typer.Argument(help="Feature set that `headsmith extract` or `import` made.")],
    out: Out,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Settings by name: quick, default, thorough, paper/imagenet1k, paper/imagenet21k, paper/cifar100; "
            "all else wins."
        ),
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


@app.command()
@options_of(FinetuneConfig, left_out=True, last=("image_column", "label_column", "workers", "tensorboard", "overwrite"))
def finetune(
    images: Annotated[str, typer.Argument(help="Folder of class folders, or a `datasets` name or path.")],
    out: Out,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="lite0, timm:NAME, torchvision:NAME or torchvision:NAME/WEIGHTS, cifar:resnet18 or a fine-tuned run.",
            show_default="the start's, or lite0",
        ),
    ] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Local weights for the backbone.")] = None,
    image_size: Annotated[int | None, typer.Option(help="Crop edge in pixels.", show_default="the backbone's")] = None,
    from_scratch: Annotated[bool, typer.Option("--from-scratch", help="Begin with random weights.")] = False,
    config: Annotated[Path | None, typer.Option(help="YAML file with settings; flags win over it.")] = None,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="How many images are decoded at once; at most 64, or the machine's cores.", show_default="usable cores"
        ),
    ] = None,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard's curves.")] = None,
    overwrite: Overwrite = False,
    **settings: Any,
) -> None:
    """Train a whole network on images, from a head run, a backbone or scratch; status 4 where it only guesses."""
    from ..core.progress import stage

    with stage("Starting"):
        from ..show import show_run
        from ..trainer import finetune as run

    made = run(
        images,
        out=out,
        backbone=backbone,
        checkpoint=checkpoint,
        image_size=image_size,
        from_scratch=from_scratch,
        image_column=image_column,
        label_column=label_column,
        workers=workers,
        config=config,
        tensorboard=tensorboard,
        overwrite=overwrite,
        **settings,
    )
    show_run(made)
    end_with(made.worthless)


def _show_preset(ctx: typer.Context, name: str | None) -> None:
    if name is not None:
        import yaml

        from ..show import show_json
        from ..trainer.presets import preset_text

        text = preset_text(name, asked_by="--show-preset")
        if "json" in ctx.meta[GIVEN]:
            show_json(yaml.safe_load(text))
        else:
            typer.echo(text, nl=False)
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
