"""Give an ONNX classifier file another head."""

from dataclasses import replace
from pathlib import Path

from ..core.arguments import typed
from ..core.errors import InputError
from ..models.backbone import load_backbone
from ..models.backbone_record import BackboneRecord
from ..models.backbones.libraries import ONNX
from ..models.preprocessing import Preprocessing
from ..trainer.run import Run
from .bundle.bundle import Bundle
from .exporting import export
from .options import FLOAT_NCHW, OPSET, ExportOptions


@typed
def graft(
    file: str | Path,
    *,
    head: str | Path | Run,
    out: str | Path,
    preprocessing: str | Path | Preprocessing | None = None,
    layer: str | None = None,
    input_format: str = FLOAT_NCHW,
    opset: int = OPSET,
    data: str | Path | None = None,
    overwrite: bool = False,
) -> Bundle:
    """Replace the last layer of an ONNX classifier by a trained head.

    All that follows the last layer goes with it, a softmax too: the new file gives logits. It takes RGB pixels, their
    preprocessing is inside, and it is proved like every export against the cut file followed by the head, on held-out
    images. `export_classifier` does the same where the file lies where the features were made, with more choices.

    Args:
        file: The classifier.
        head: A run on features of this file (``extract --backbone onnx:FILE``), or its folder; or a run on imported
            features whose backbone was not named, of the same width.
        out: The bundle's folder.
        preprocessing: The file's recipe, or a YAML file with it, where neither the run nor the file says it.
        layer: The last layer, where that is not plain and the run does not say it.
        input_format: See `export_classifier`.
        opset: The ONNX operator set; that of the file is brought to it.
        data: Held-out images for the proof; by default the run's test split.
        overwrite: Replace an existing bundle.

    Returns:
        The bundle, opened again with its hashes checked.

    Raises:
        InputError: The head belongs to another network, or the file, the recipe or an option cannot be used.
        ParityError: The new file answers otherwise than its parts.
    """
    run = head if isinstance(head, Run) else Run.load(head)
    backbone = _backbone(Path(file), run, preprocessing, layer)
    options = ExportOptions(input_format=input_format, opset=opset, data=data, overwrite=overwrite)
    return export(replace(run, record=replace(run.record, backbone=backbone)), Path(out), options)


def _backbone(
    file: Path, run: Run, preprocessing: str | Path | Preprocessing | None, layer: str | None
) -> BackboneRecord:
    """The record of the file as a backbone; export checks that it is the one of the features."""
    known = run.record.backbone
    if known is None:
        return load_backbone(f"{ONNX}{file}", preprocessing=preprocessing, layer=layer).record()
    if known.file is None:
        raise InputError(
            f"{run.path}: its head was trained on features of {known.spec}, not of an ONNX file; extract with "
            f"--backbone {ONNX}{file.name} and train again"
        )
    for flag, value in (("--preprocessing", preprocessing), ("--layer", layer)):
        if value is not None:
            raise InputError(f"{flag}: {value} found, but {run.path} already sets it; leave it out")
    return replace(known, file=str(file))
