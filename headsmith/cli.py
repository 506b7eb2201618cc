"""The command line. Each command is one function of the Python API with the same keywords and defaults.

What is heavy (torch, timm, onnxruntime) is imported inside the commands, so that ``headsmith --help`` is quick.
"""

import logging
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from .commands import Commands
from .version import __version__

app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)


class Format(StrEnum):
    """The file formats of an exported classifier."""

    onnx = "onnx"
    torchscript = "torchscript"


class InputFormat(StrEnum):
    """What ``pixel_values`` of an exported classifier are."""

    float_nchw = "float-nchw"
    uint8_nhwc = "uint8-nhwc"


Out = Annotated[Path, typer.Option(help="Folder to make.")]
Overwrite = Annotated[bool, typer.Option(help="Replace a folder that exists.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Provider = Annotated[
    str, typer.Option(help="onnxruntime's execution provider: cpu or cuda. It runs, or it is an error.")
]
Threads = Annotated[
    int | None, typer.Option(help="onnxruntime's threads.", show_default="the cores this process may use")
]
ImageColumn = Annotated[str | None, typer.Option(help="Image column of a `datasets` source.")]
LabelColumn = Annotated[str | None, typer.Option(help="Label column of a `datasets` source.")]
Strict = Annotated[bool, typer.Option(help="Stop at the first unreadable image instead of reporting it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option(help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Train heads on frozen backbones, export them, and measure the exported file."""
    logging.basicConfig(format="headsmith: %(message)s", level=logging.ERROR)
    logging.getLogger("headsmith").setLevel(logging.WARNING)


@app.command()
def doctor(json: Json = False) -> None:
    """Versions, CPU and GPU, and the execution providers that really load."""
    from .doctor import examine, show

    show(examine(), json)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything the demo makes.")] = Path("demo"),
    classes: Annotated[int | None, typer.Option(help="Characters.", show_default="1000, with --quick 100")] = None,
    quick: Annotated[bool, typer.Option(help="Fewer classes.")] = False,
) -> None:
    """Glyphs from matplotlib's fonts to two measured classifiers: the whole way, with nothing to download."""
    from .demo.demo import run_demo

    run_demo(out, classes=classes, quick=quick)


@app.command()
def extract(
    images: Annotated[str, typer.Argument(help="Folder of class folders, or a `datasets` name or path.")],
    out: Out,
    backbone: Annotated[
        str, typer.Option(help="lite0, timm:NAME, torchvision:NAME or torchvision:NAME/WEIGHTS.")
    ] = "lite0",
    checkpoint: Annotated[Path | None, typer.Option(help="Local weights for the backbone.")] = None,
    image_size: Annotated[int | None, typer.Option(help="Crop edge in pixels.", show_default="the backbone's")] = None,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    crops: Annotated[
        int, typer.Option(help="Crops of a training image: 1, or 5 (the corners too); each is a row with the same id.")
    ] = 1,
    flip: Annotated[
        bool, typer.Option("--flip/--no-flip", help="The mirror image of each crop of a training image is a row too.")
    ] = False,
    batch_size: Annotated[int, typer.Option(help="Crops a forward pass.")] = 64,
    workers: Annotated[int | None, typer.Option(help="Decoding threads.", show_default="usable cores")] = None,
    device: Device = "auto",
    amp: Annotated[
        bool,
        typer.Option(
            "--amp/--no-amp", help="Autocast to float16 on CUDA: faster, and no longer exactly the exported file's."
        ),
    ] = False,
    dtype: Annotated[str, typer.Option(help="How features are stored: float16 or float32.")] = "float16",
    strict: Strict = False,
    overwrite: Overwrite = False,
) -> None:
    """Compute the features of a set of images once; several processes, and torchrun, share the work."""
    from .show import show_feature_set
    from .trainer import extract as run

    show_feature_set(
        run(
            images,
            out=out,
            backbone=backbone,
            checkpoint=checkpoint,
            image_size=image_size,
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
    features_column: Annotated[
        str | None, typer.Option(help="Key or column of the features (N, D).", show_default="the only possible one")
    ] = None,
    labels_column: Annotated[
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
    held_out_share: Annotated[float, typer.Option(help="Of each class, for each split that the files lack.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Decides which rows are held out.")] = 0,
    overwrite: Overwrite = False,
) -> None:
    """Make a feature set of embeddings that exist: .p .pt .npz .npy .safetensors .parquet .arrow, `datasets`."""
    from .show import show_feature_set
    from .trainer import import_features as run

    show_feature_set(
        run(
            files,
            out=out,
            features_column=features_column,
            labels_column=labels_column,
            id_column=id_column,
            group_column=group_column,
            class_names=class_names,
            dtype=dtype,
            backbone=backbone,
            checkpoint=checkpoint,
            image_size=image_size,
            held_out_share=held_out_share,
            seed=seed,
            overwrite=overwrite,
        )
    )


@app.command()
def inspect(
    features: Annotated[Path, typer.Argument(help="Feature set.")],
    json: Json = False,
) -> None:
    """Say what is in a feature set; status 1 where something would spoil a training."""
    from .show_inspection import show_inspection
    from .trainer import inspect_features as run

    found = run(features)
    show_inspection(found, json)
    if found.problems:
        raise typer.Exit(1)


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
    top1_mode: Annotated[str | None, _setting("How top-1 enters the loss: sm, smce or sort.", "sm")] = None,
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
        _setting("zeros, backbone (its own classifier, classes by name), backbone-in-order, or a run folder.", "zeros"),
    ] = None,
    optimizer: Annotated[str | None, _setting("adam, adamw, sgd, or lbfgs on the full batch.", "adam")] = None,
    learning_rate: Annotated[float | None, _setting("The optimiser's step size.", "the loss's")] = None,
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
    epochs: Annotated[int | None, _setting("Passes over the training split, at most.", "100")] = None,
    batch_size: Annotated[int | None, _setting("Rows a step, over all processes.", "512")] = None,
    patience: Annotated[int | None, _setting("Epochs without a better validation score.", "10")] = None,
    seed: Annotated[int | None, _setting("Fixes the order of the rows, and what is drawn.", "0")] = None,
    device: Annotated[str | None, _setting("auto, cpu or cuda.", "auto")] = None,
    gpu_memory: Annotated[
        float | None,
        typer.Option(help="GB that features may take on a GPU; more are streamed.", show_default="what is free"),
    ] = None,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard's curves.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Train a head on a feature set."""
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
    from .show import show_run
    from .trainer import train as run

    given: Any = {name: value for name, value in settings.items() if value is not None}
    show_run(
        run(
            features,
            out=out,
            preset=preset,
            config=config,
            gpu_memory=gpu_memory,
            tensorboard=tensorboard,
            overwrite=overwrite,
            **given,
        )
    )


@app.command()
def sweep(
    features: Annotated[Path, typer.Argument(help="Feature set with a validation split.")],
    out: Out,
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML file: the settings of `train`, each a value or a list of values; see docs/training.md."
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="Published settings under those of --config, or alone the grid of their tables."),
    ] = None,
    device: Annotated[str | None, _setting("auto, cpu or cuda.", "the file's, else auto")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Train a grid of heads side by side, and keep the best on validation."""
    from .show_sweep import show_sweep
    from .trainer.sweep import sweep as run

    show_sweep(run(features, out=out, config=config, preset=preset, device=device, overwrite=overwrite), json)


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="Run folder that `headsmith train` made.")],
    out: Out,
    formats: Annotated[list[Format], typer.Option("--format", help="May be given more than once.")] = [Format.onnx],  # noqa: B006
    head_only: Annotated[bool, typer.Option(help="Features to logits, without the backbone.")] = False,
    input_format: Annotated[
        InputFormat, typer.Option("--input", help="What the file takes: RGB in 0..255, resized and cropped.")
    ] = InputFormat.float_nchw,
    opset: Annotated[int, typer.Option(help="ONNX operator set.")] = 18,
    data: Annotated[
        str | None, typer.Option(help="Held-out images for the parity check.", show_default="the run's test split")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Images a batch of the parity check.")] = 64,
    tolerance: Annotated[
        float,
        typer.Option(
            help="In logits: a flip on a smaller margin is a tie, and no logit may differ by more (times the largest)."
        ),
    ] = 1e-3,
    overwrite: Overwrite = False,
) -> None:
    """Write a classifier as files, and prove that each answers as the Python module does."""
    from .export import export_classifier
    from .show import show_bundle

    show_bundle(
        export_classifier(
            run,
            out=out,
            formats=tuple(name.value for name in formats),
            head_only=head_only,
            input_format=input_format.value,
            opset=opset,
            data=data,
            batch_size=batch_size,
            tolerance=tolerance,
            overwrite=overwrite,
        )
    )


@app.command()
def evaluate(
    bundle: Annotated[Path, typer.Argument(help="Bundle that `headsmith export` made.")],
    data: Annotated[
        str, typer.Option(help="Held-out images: a folder of class folders, or a `datasets` name or path.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for results.json, results.csv, predictions.csv.", show_default="results/BUNDLE"),
    ] = None,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    provider: Provider = "cpu",
    batch_size: Annotated[int, typer.Option(help="Images a run of the session.")] = 64,
    threads: Threads = None,
    save_logits: Annotated[bool, typer.Option(help="Also write logits.npz into --out.")] = False,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Measure the exported ONNX file under onnxruntime."""
    from .evaluate import evaluate_classifier
    from .show import show_result

    show_result(
        evaluate_classifier(
            bundle,
            data=data,
            out=out,
            image_column=image_column,
            label_column=label_column,
            provider=provider,
            batch_size=batch_size,
            threads=threads,
            save_logits=save_logits,
            strict=strict,
        ),
        json,
    )


@app.command()
def predict(
    bundle: Annotated[Path, typer.Argument(help="Bundle that `headsmith export` made.")],
    images: Annotated[list[Path], typer.Argument(help="Image files.")],
    k: Annotated[int, typer.Option(help="Labels an image.")] = 5,
    provider: Provider = "cpu",
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Name the best labels of images."""
    from .evaluate import predict as run
    from .show import show_predictions

    show_predictions(run(bundle, images, k=k, provider=provider, threads=threads), json)
