"""Features: extract, import and inspect."""

from pathlib import Path
from typing import Annotated

import typer

from .app import app
from .shared import (
    Device,
    DropBackground,
    ImageColumn,
    Json,
    LabelColumn,
    Layer,
    Out,
    Overwrite,
    Preprocessing,
    Strict,
)


@app.command()
def extract(
    images: Annotated[str, typer.Argument(help="Folder of class folders, or a `datasets` name or path.")],
    out: Out,
    backbone: Annotated[
        str,
        typer.Option(
            help="lite0, timm:NAME, torchvision:NAME or torchvision:NAME/WEIGHTS, onnx:FILE or a fine-tuned run."
        ),
    ] = "lite0",
    checkpoint: Annotated[Path | None, typer.Option(help="Local weights for the backbone.")] = None,
    image_size: Annotated[int | None, typer.Option(help="Crop edge in pixels.", show_default="the backbone's")] = None,
    preprocessing: Preprocessing = None,
    layer: Layer = None,
    drop_background: DropBackground = False,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    crops: Annotated[
        int, typer.Option(help="Crops of a training image: 1, or 5 (the corners too); each is a row with the same id.")
    ] = 1,
    flip: Annotated[
        bool, typer.Option("--flip", help="The mirror image of each crop of a training image is a row too.")
    ] = False,
    batch_size: Annotated[int, typer.Option(help="Crops a forward pass.")] = 64,
    workers: Annotated[
        int | None,
        typer.Option(
            help="How many images are decoded at once; at most 64, or the machine's cores.", show_default="usable cores"
        ),
    ] = None,
    device: Device = "auto",
    amp: Annotated[
        bool,
        typer.Option("--amp", help="Autocast to float16 on CUDA: faster, and no longer exactly the exported file's."),
    ] = False,
    dtype: Annotated[str, typer.Option(help="How features are stored: float16 or float32.")] = "float16",
    strict: Strict = False,
    overwrite: Overwrite = False,
) -> None:
    """Compute the features of a set of images once; several processes, and torchrun, share the work."""
    from ..core.progress import stage

    with stage("Starting"):
        from ..show import show_feature_set
        from ..trainer import extract as run

    show_feature_set(
        run(
            images,
            out=out,
            backbone=backbone,
            checkpoint=checkpoint,
            image_size=image_size,
            preprocessing=preprocessing,
            layer=layer,
            drop_background=drop_background,
            image_column=image_column,
            label_column=label_column,
            crops=crops,
            flip=flip,
            batch_size=batch_size,
            workers=workers,
            device=device,
            amp=amp,
            dtype=dtype,
            strict=strict,
            overwrite=overwrite,
        )
    )


@app.command("import")
def import_(
    files: Annotated[
        list[str], typer.Argument(help="Files, folders, `datasets` names; train=FILE for a split.", metavar="FILE...")
    ],
    out: Out,
    feature_column: Annotated[
        str | None, typer.Option(help="Key or column of the features (N, D).", show_default="the only possible one")
    ] = None,
    label_column: Annotated[
        str | None, typer.Option(help="Key or column of the labels (N,).", show_default="the only possible one")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="Key or column of the ids.", show_default="id, or FILE/ROW")
    ] = None,
    group_column: Annotated[str | None, typer.Option(help="Rows that share its value stay in one split.")] = None,
    class_names: Annotated[
        Path | None, typer.Option(help="Text file of names, one a line, that labels count from 0.")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(help="float16 or float32.", show_default="float16 if the files are, else float32")
    ] = None,
    backbone: Annotated[
        str | None, typer.Option(help="What computed the features, as for extract: needed to classify images.")
    ] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Local weights for the backbone.")] = None,
    image_size: Annotated[int | None, typer.Option(help="Crop edge in pixels.", show_default="the backbone's")] = None,
    preprocessing: Preprocessing = None,
    layer: Layer = None,
    drop_background: DropBackground = False,
    held_out_share: Annotated[float, typer.Option(help="Of each class, for each split that the files lack.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Decides which rows are held out.")] = 0,
    overwrite: Overwrite = False,
) -> None:
    """Make a feature set of embeddings: .p .pt .npz .npy .safetensors .parquet .arrow .csv .tsv, `datasets`."""
    from ..show import show_imported
    from ..trainer import import_features as run

    made = run(
        files,
        out=out,
        feature_column=feature_column,
        label_column=label_column,
        id_column=id_column,
        group_column=group_column,
        class_names=class_names,
        dtype=dtype,
        backbone=backbone,
        checkpoint=checkpoint,
        image_size=image_size,
        preprocessing=preprocessing,
        layer=layer,
        drop_background=drop_background,
        held_out_share=held_out_share,
        seed=seed,
        overwrite=overwrite,
    )
    show_imported(made)


@app.command()
def inspect(
    features: Annotated[Path, typer.Argument(help="Feature set, or a file with features and labels.")],
    json: Json = False,
) -> None:
    """Say what is in a feature set; status 1 where something would spoil a training."""
    from ..show_inspection import show_inspection
    from ..trainer import inspect_features as run

    found = run(features)
    show_inspection(found, json)
    if found.problems:
        raise typer.Exit(1)
