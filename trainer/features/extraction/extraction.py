"""Features of all images of a data set under a frozen backbone, computed once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from ....core.arguments import typed
from ....core.count_limits import check_at_once, check_threads
from ....core.cpus import usable_cpus
from ....core.distributed import Processes
from ....core.errors import InputError, keeping
from ....core.files import check_outside, read_json
from ....core.full_disk import full_disk_message, is_full_disk
from ....core.progress import stage
from ....models.backbone import load_backbone
from ....models.backbone_record import BackboneRecord
from ....models.images import UnreadableImage
from ....models.preprocessing import Preprocessing
from ..feature_set import FeatureSet
from ..images.image_set import ImageSet, open_images
from ..manifest import FORMAT, MANIFEST, read_manifest
from .assembly import assemble, publish
from .embedding import Embedder
from .request import Request, differences
from .shard_work import Filling
from .shards import plan
from .views import Views
from .workers import Worker, join, partial_of

DTYPES = {"float16": torch.float16, "float32": torch.float32}


@typed
def extract(
    images: str | Path | ImageSet,
    *,
    out: str | Path,
    backbone: str = "lite0",
    checkpoint: str | Path | None = None,
    image_size: int | None = None,
    preprocessing: str | Path | Preprocessing | None = None,
    layer: str | None = None,
    drop_background: bool = False,
    image_column: str | None = None,
    label_column: str | None = None,
    crops: int = 1,
    flip: bool = False,
    batch_size: int = 64,
    workers: int | None = None,
    device: str = "auto",
    amp: bool = False,
    dtype: str = "float16",
    strict: bool = False,
    overwrite: bool = False,
) -> FeatureSet:
    """Extract the features of a data set, or open them where they are there already.

    Features are written part by part to ``OUT.partial`` and put in place at the end. After an interruption, whatever it
    was, the same call goes on where it stopped, and the result is that of an unbroken run.

    Several processes may be called with the same arguments, at any time: they share the parts, one puts the result in
    place, and all return it. Under torchrun they take a CUDA device each.

    Args:
        images: Folder of class folders, or a `datasets` folder or name; see `open_images`; or what that opened.
        out: Folder of the feature set.
        backbone: ``lite0``, ``timm:NAME``, ``torchvision:NAME[/WEIGHTS]``, ``onnx:FILE`` or a fine-tuned run.
        checkpoint: Local weights for the backbone.
        image_size: Another crop edge in pixels than the backbone's own.
        preprocessing: Of an ONNX file that does not say it itself: a recipe, or a YAML file with one.
        layer: The last layer of an ONNX file, where it is not plain.
        drop_background: The first output of an ONNX file is no class.
        image_column: Column with the images of a `datasets` source.
        label_column: Column with the labels of a `datasets` source.
        crops: Crops of a training image: 1, or 5 (the four corners as well); each is a row with the image's id.
            Validation and test keep the one view that is deployed.
        flip: Whether the mirror image of each crop of a training image is a further row.
        batch_size: Crops a forward pass; it does not decide whether features are reused.
        workers: How many images are decoded at once, in threads, or in processes if more than 8 (Linux); by default
            one for each CPU that this process may use, divided among the processes of torchrun.
        device: ``auto``, ``cpu`` or ``cuda``.
        amp: Run the backbone under autocast to float16: faster on a CUDA device, and the features are no longer exactly
            those of the exported file.
        dtype: Stored as ``float16`` or ``float32``.
        strict: Stop at an unreadable image instead of leaving it out and listing it in the manifest.
        overwrite: Replace a feature set or an unfinished extraction at ``out`` (not one that is under way).

    Returns:
        The feature set. Where ``out`` holds it already (same weights, transform, source, split rule, views, precision
        and dtype), it is returned as it is.

    Raises:
        InputError: Bad images, backbone or arguments; ``out`` holds something else, or another extraction is writing
            it; a feature is not finite; the disk is full (finished parts are kept).
        UnreadableImage: With ``strict``, at the first unreadable image.
    """
    check_at_once("--batch-size", batch_size)
    if workers is not None:
        check_threads("--workers", workers)
    if dtype not in DTYPES:
        raise InputError(f"--dtype: {dtype!r} is not known; expected one of {list(DTYPES)}")
    processes, out = Processes.launched(device), Path(out)
    if not isinstance(images, ImageSet):
        check_outside(out, images)
        images = open_images(images, image_column=image_column, label_column=label_column)
    image_set = images
    with stage(f"Loading {backbone}"):
        network = load_backbone(
            backbone,
            checkpoint=checkpoint,
            image_size=image_size,
            preprocessing=preprocessing,
            layer=layer,
            drop_background=drop_background,
        )
        record, views = network.record(), Views(network.preprocessing, crops, flip)
        embedder = Embedder(network, processes.device, DTYPES[dtype], amp)
    threads = max(1, usable_cpus() // processes.local) if workers is None else workers
    shards = plan(image_set, len(views.names))
    filling = Filling(image_set, shards, embedder, views, batch_size, threads, strict, processes.rank == 0)

    with _full_disk_explained(partial_of(out)):
        source = processes.broadcast(f"source of {out}", lambda: image_set.fingerprint)
        request = Request.of_images(record, source, image_set.split_rule, dtype, amp=amp, views=views.names)
        worker = processes.first_then_others(f"begin {out}", lambda first: _join(out, request, overwrite and first))
        if worker is not None:
            with worker:
                with keeping(lambda: filling.kept(worker)):
                    filling.fill(worker)
                _finish(worker, filling, record)
    _check_strict(out, strict)
    return FeatureSet.load(out)


def _join(out: Path, request: Request, overwrite: bool) -> Worker | None:
    """Take part in the extraction, unless the features are there."""

    def is_there() -> bool:
        return _is_there(out, request, overwrite)

    if not partial_of(out).exists() and is_there():
        return None  # without a lock, so that a read-only disk will do
    return join(out, request, overwrite, is_there)


def _finish(worker: Worker, filling: Filling, backbone: BackboneRecord) -> None:
    """Put the result in place, unless another process did."""
    with worker.alone():
        if worker.listing() is None:
            return
        assembled = assemble(worker.partial, filling.shards, filling.images, backbone, worker.request)
        _check_strict(assembled, filling.strict)
        publish(assembled, worker.partial, worker.out)


def _is_there(out: Path, request: Request, overwrite: bool) -> bool:
    """Whether ``out`` holds these very features and they are to be kept.

    Raises:
        InputError: It holds something else that is not to be replaced.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return False
    if not (out / MANIFEST).is_file():
        raise InputError(f"{out}: exists and is not a feature set; choose another `out`")
    if overwrite and read_json(out / MANIFEST).get("format") == FORMAT:
        return False
    changed = differences(read_manifest(out).request, request)
    if changed:
        raise InputError(
            f"{out}: holds features made with {changed}; choose another `out`, or replace them with `overwrite`"
        )
    return True


def _check_strict(folder: Path, strict: bool) -> None:
    """Raise for images that an earlier run, which was not strict, left out."""
    left_out = read_manifest(folder).unreadable
    if strict and left_out:
        first = left_out[0]
        raise UnreadableImage(
            f"{first.id}: {first.reason} ({len(left_out)} in all); repair or remove it, or run without --strict"
        )


@contextmanager
def _full_disk_explained(partial: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if not is_full_disk(error):
            raise
        error.filename = str(partial)
        raise InputError(full_disk_message(error, "the finished parts are kept")) from error
