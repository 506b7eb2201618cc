"""Features that exist already, as a feature set."""

from collections.abc import Sequence
from pathlib import Path

from ....core.arguments import typed
from ....core.errors import InputError
from ....core.text_file import read_lines
from ....models.backbone import load_backbone
from ....models.preprocessing import Preprocessing
from ..feature_set import FeatureSet
from ..images.carving import HELD_OUT_SHARE, SEED
from .builder import FeatureSetBuilder
from .column_roles import Names
from .open_tables import open_tables
from .table import check_different


@typed
def import_features(
    files: str | Path | Sequence[str | Path],
    *,
    out: str | Path,
    feature_column: str | None = None,
    label_column: str | None = None,
    id_column: str | None = None,
    group_column: str | None = None,
    class_names: str | Path | None = None,
    dtype: str | None = None,
    backbone: str | None = None,
    checkpoint: str | Path | None = None,
    image_size: int | None = None,
    preprocessing: str | Path | Preprocessing | None = None,
    layer: str | None = None,
    drop_background: bool = False,
    held_out_share: float = HELD_OUT_SHARE,
    seed: int = SEED,
    overwrite: bool = False,
) -> FeatureSet:
    """Make a feature set of embeddings that exist already.

    Read are dictionaries of ``torch.save`` (``.p``, ``.pt``), ``.npz``, ``.npy`` with labels beside them
    (``x_labels.npy``, ``metadata_0.parquet``), safetensors, parquet, Arrow, CSV and TSV, folders of these,
    and `datasets` folders and hub names. Features are copied some at a time, so they may exceed the memory; nothing in
    a file is ever run.

    Args:
        files: Files, folders or names, or a single one. A split is what stands before it (``train=FILE``), else
            what a column ``split`` says row by row, else what the name of a key, file or folder says
            (``train_embeddings``, ``test.npz``). A file of labels counts for the array that it is named with,
            or for several, row after row in the order in which they are named.
        out: The feature set to make.
        feature_column: Key or column with the features ``(N, D)``; by default the only possible one.
        label_column: Key or column with the labels ``(N,)``: whole numbers or text.
        id_column: Key or column with the ids; by default text or whole numbers called ``id``, else
            ``FILE/ROW``.
        group_column: Rows that share its value stay in one split.
        class_names: A text file with the names, one a line, that whole-number labels count from 0.
        dtype: ``float16`` or ``float32``; by default float16 where the files have it, else float32.
        backbone: What computed the features, as for `extract`; without it only the head can be exported.
        checkpoint: Local weights for the backbone.
        image_size: Another crop edge in pixels than the backbone's own.
        preprocessing: Of an ONNX file that does not say it itself: a recipe, or a YAML file with one.
        layer: The last layer of an ONNX file, where it is not plain.
        drop_background: The first output of an ONNX file is no class.
        held_out_share: Of each class for each split that the files lack.
        seed: Decides which rows.
        overwrite: Replace a feature set at ``out``.

    Returns:
        The feature set.

    Raises:
        InputError: A file, column, label or feature that cannot be used; the message says which row.
    """
    given = {"--checkpoint": checkpoint, "--image-size": image_size, "--preprocessing": preprocessing, "--layer": layer}
    for flag, value in given.items():
        if value is not None and backbone is None:
            raise InputError(f"{flag}: {value} found without --backbone; say which backbone it belongs to")
    files = [files] if isinstance(files, str | Path) else list(files)
    names = None if class_names is None else _read_names(Path(class_names))
    record = None
    if backbone is not None:
        network = load_backbone(
            backbone,
            checkpoint=checkpoint,
            image_size=image_size,
            preprocessing=preprocessing,
            layer=layer,
            drop_background=drop_background,
        )
        record = network.record()
    asked = Names(feature_column, label_column, id_column, group_column)
    builder = FeatureSetBuilder(
        open_tables(files),
        [str(name) for name in files],
        asked,
        class_names=names,
        dtype=dtype,
        backbone=record,
        held_out_share=held_out_share,
        seed=seed,
    )
    builder.write(Path(out), overwrite=overwrite)
    return FeatureSet.load(out)


def _read_names(path: Path) -> list[str]:
    names = read_lines(path)
    check_different(names, str(path))
    return names
