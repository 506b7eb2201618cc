"""Classifiers: export, verify, evaluate and predict."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .app import app
from .shared import Bundle, Json, Out, Overwrite, Provider, Threads

UNREADABLE = 1


class Format(StrEnum):
    """The file formats of an exported classifier."""

    onnx = "onnx"
    torchscript = "torchscript"
    pt2 = "pt2"
    timm = "timm"
    triton = "triton"


class InputFormat(StrEnum):
    """What ``pixel_values`` of an exported classifier are."""

    float_nchw = "float-nchw"
    uint8_nhwc = "uint8-nhwc"
    encoded = "encoded"


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="Run folder that `headsmith train` made.")],
    out: Out,
    formats: Annotated[list[Format], typer.Option("--format", help="May be given more than once.")] = [Format.onnx],  # noqa: B006
    head_only: Annotated[bool, typer.Option(help="Features to logits, without the backbone.")] = False,
    input_format: Annotated[
        InputFormat, typer.Option("--input", help="RGB in 0..255, resized and cropped; or the bytes of an image file.")
    ] = InputFormat.float_nchw,
    resize: Annotated[
        bool, typer.Option(help="With uint8-nhwc: images of any size, resized and cropped inside the file.")
    ] = False,
    probabilities: Annotated[bool, typer.Option(help="A further output: the softmax of the logits.")] = False,
    fp16: Annotated[bool, typer.Option(help="model.onnx in float16; inputs and outputs stay float32.")] = False,
    fp32_head: Annotated[bool, typer.Option(help="With --fp16: the head stays float32.")] = False,
    fp16_input: Annotated[bool, typer.Option(help="With --fp16: the input is float16 too.")] = False,
    int8: Annotated[bool, typer.Option(help="model.onnx in int8, calibrated on training images.")] = False,
    int8_dynamic: Annotated[bool, typer.Option(help="Matrix products in int8, ranges from every batch.")] = False,
    calibration_images: Annotated[int, typer.Option(help="Training images to take ranges of activations from.")] = 512,
    max_top1_drop: Annotated[
        float, typer.Option(help="Points that a lower precision may lose on validation images, against float32.")
    ] = 1.0,
    max_top5_drop: Annotated[float, typer.Option(help="The same in top-5.")] = 1.0,
    max_flips: Annotated[
        int | None, typer.Option(help="Validation images that may get another class.", show_default="no limit")
    ] = None,
    weak_gate: Annotated[
        bool, typer.Option(help="Go on where one validation image is more points than may be lost.")
    ] = False,
    calibrate: Annotated[bool, typer.Option(help="Fit a temperature on validation, inside the weights.")] = False,
    opset: Annotated[int, typer.Option(help="ONNX operator set.")] = 18,
    data: Annotated[
        str | None,
        typer.Option(help="Held-out images, for a head alone a feature set.", show_default="the run's test split"),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Images a batch of the parity check.")] = 64,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="In logits: no logit may differ by more (times the largest), flips on smaller margins are excused.",
            show_default="30 times the rounding that float64 shows",
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a classifier as files, and prove that each answers as the Python module does."""
    from ..export import export_classifier
    from ..show import show_bundle

    show_bundle(
        export_classifier(
            run,
            out=out,
            formats=tuple(name.value for name in formats),
            head_only=head_only,
            input_format=input_format.value,
            resize=resize,
            probabilities=probabilities,
            fp16=fp16,
            fp32_head=fp32_head,
            fp16_input=fp16_input,
            int8=int8,
            int8_dynamic=int8_dynamic,
            calibration_images=calibration_images,
            max_top1_drop=max_top1_drop,
            max_top5_drop=max_top5_drop,
            max_flips=max_flips,
            weak_gate=weak_gate,
            calibrate=calibrate,
            opset=opset,
            data=data,
            batch_size=batch_size,
            tolerance=tolerance,
            overwrite=overwrite,
        )
    )


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
