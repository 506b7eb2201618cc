"""Features of all images of a data set under a frozen backbone, computed once."""

import errno
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout
from torch import Tensor, nn

from ...models.backbone import Backbone, load_backbone
from ...models.environment import pick_device
from ...models.errors import InputError
from ...models.files import read_json
from ...models.images import UnreadableImage
from ...models.preprocessing import Normalize
from ..progress import progress
from .assembly import assemble, publish
from .batches import Pixels, check_at_least_one, decode, gather
from .feature_set import FORMAT, MANIFEST, FeatureSet, read_manifest
from .image_set import ImageSet, open_images
from .request import differences, request_parts
from .samples import Sample
from .shards import Shard, open_partial, plan, write_shard

DTYPES = {"float16": torch.float16, "float32": torch.float32}
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
Decoded = Iterator[tuple[Sample, Pixels | UnreadableImage]]


def extract(
    images: str | Path,
    *,
    out: str | Path,
    backbone: str = "lite0",
    checkpoint: str | Path | None = None,
    image_size: int | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    batch_size: int = 64,
    workers: int | None = None,
    device: str = "auto",
    dtype: str = "float16",
    strict: bool = False,
    overwrite: bool = False,
) -> FeatureSet:
    """Extract the features of a data set, or open them where they are there already.

    Features are written part by part to ``OUT.partial`` and put in place at the end. After an interruption, whatever it
    was, the same call goes on where it stopped, and the result is that of an unbroken run.

    Args:
        images: Folder of class folders, or a `datasets` folder or name; see `open_images`.
        out: Folder of the feature set.
        backbone: ``lite0``, ``timm:NAME`` or ``torchvision:NAME[/WEIGHTS]``.
        checkpoint: Local weights for the backbone.
        image_size: Another crop edge in pixels than the backbone's own.
        image_column: Column with the images of a `datasets` source.
        label_column: Column with the labels of a `datasets` source.
        batch_size: Images a forward pass; it does not decide whether features are reused.
        workers: Decoding threads; by default one for each CPU that this process may use.
        device: ``auto``, ``cpu`` or ``cuda``.
        dtype: Stored as ``float16`` or ``float32``.
        strict: Stop at an unreadable image instead of leaving it out and listing it in the manifest.
        overwrite: Replace a feature set or an unfinished extraction at ``out``.

    Returns:
        The feature set. Where ``out`` holds it already (same weights, transform, source, split rule and dtype), it is
        returned as it is.

    Raises:
        InputError: Bad images, backbone or arguments; ``out`` holds something else; a feature is not finite; the disk
            is full (finished parts are kept).
        UnreadableImage: With ``strict``, at the first unreadable image.
    """
    check_at_least_one("--batch-size", batch_size)
    if dtype not in DTYPES:
        raise InputError(f"--dtype: {dtype!r} is not known; expected one of {list(DTYPES)}")
    out, target = Path(out), pick_device(device)
    partial = out.resolve().with_name(f"{out.resolve().name}.partial")
    _check_outside(out, images)
    image_set = open_images(images, image_column=image_column, label_column=label_column)
    network = load_backbone(backbone, checkpoint=checkpoint, image_size=image_size)
    record = network.record()
    request = request_parts(record, image_set.fingerprint, image_set.split_rule, dtype)
    if _is_there(out, request, overwrite):
        shutil.rmtree(partial, ignore_errors=True)
        _check_strict(out, strict)
        return FeatureSet.load(out)
    with _full_disk_explained(partial), _only_one(out):
        if overwrite and (partial / "request.json").is_file():
            shutil.rmtree(partial)
        open_partial(partial, request)
        shards = plan(image_set)
        run = _Run(image_set, network.to(target), target, DTYPES[dtype], batch_size, strict)
        run.fill(partial, shards, workers)
        assembled = assemble(partial, shards, image_set, record, request)
        _check_strict(assembled, strict)
        publish(assembled, partial, out)
    return FeatureSet.load(out)


class _Run:
    """What every shard of one extraction shares."""

    def __init__(
        self,
        images: ImageSet,
        backbone: Backbone,
        device: torch.device,
        dtype: torch.dtype,
        batch_size: int,
        strict: bool,
    ) -> None:
        self.images, self.device, self.dtype = images, device, dtype
        self.batch_size, self.strict = batch_size, strict
        self.backbone = backbone
        self.network = nn.Sequential(Normalize(backbone.preprocessing), backbone).eval().to(device)
        self.network.to(memory_format=torch.channels_last)

    def fill(self, partial: Path, shards: list[Shard], workers: int | None) -> None:
        """Compute the shards that are not there yet; decoding runs ahead across them."""
        missing = [shard for shard in shards if not (partial / shard.name).exists()]
        indices = [index for shard in missing for index in shard.indices]
        stream = decode(self.images, indices, self.backbone.preprocessing, workers)
        done = len(self.images) - len(indices)
        with closing(stream), progress("Extracting", len(self.images), "images", done=done) as advance:
            for shard in missing:
                self._extract(partial / shard.name, islice(stream, len(shard.indices)), advance)

    def _extract(self, path: Path, stream: Decoded, advance: Any) -> None:
        start = time.perf_counter()
        unreadable: list[dict[str, str]] = []
        ids: list[str] = []
        labels, features = [np.empty(0, np.int64)], [torch.empty(0, self.backbone.feature_dim, dtype=self.dtype)]
        while window := list(islice(stream, self.batch_size)):
            report = lambda name, reason: unreadable.append({"id": name, "reason": reason})  # noqa: E731
            batch = gather(window, self.strict, report)
            if batch.ids:
                features.append(self._features(batch.pixels, batch.ids))
            ids += batch.ids
            labels.append(batch.labels)
            advance(len(window))
        seconds = time.perf_counter() - start
        write_shard(path, ids, np.concatenate(labels), torch.cat(features), unreadable, seconds)

    @torch.inference_mode()
    def _features(self, pixels: Pixels, ids: list[str]) -> Tensor:
        """Features ``(N, D)`` of pixels ``(N, H, W, 3)``, in the stored dtype, on the CPU.

        Without TF32, so that they are those of the exported file, and of a CPU.
        """
        batch = torch.from_numpy(pixels).to(self.device).permute(0, 3, 1, 2)
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            features: Tensor = self.network(batch).float()
        stored = features.to(self.dtype)
        _check_finite(features, ids, "the backbone gives NaN or infinite features; check its weights and the image")
        _check_finite(stored, ids, f"a feature is beyond {self.dtype}'s range; extract with --dtype float32")
        return stored.cpu()


def _check_finite(features: Tensor, ids: list[str], problem: str) -> None:
    bad = ~torch.isfinite(features).all(dim=1)
    if bad.any():
        raise InputError(f"{ids[int(bad.nonzero()[0])]}: {problem}")


def _is_there(out: Path, request: dict[str, Any], overwrite: bool) -> bool:
    """Whether ``out`` holds these very features and they are to be kept.

    Raises:
        InputError: It holds something else that is not to be replaced.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return False
    if not (out / MANIFEST).is_file():
        raise InputError(f"{out}: exists and is not a feature set; choose another --out")
    if overwrite and read_json(out / MANIFEST).get("format") == FORMAT:
        return False
    changed = differences(read_manifest(out)["request"], request)
    if changed:
        raise InputError(
            f"{out}: holds features made with {changed}; choose another --out, or replace them with --overwrite"
        )
    return True


def _check_strict(folder: Path, strict: bool) -> None:
    """Raise for images that an earlier run, which was not strict, left out."""
    left_out = read_manifest(folder)["unreadable"]
    if strict and left_out:
        first = left_out[0]
        raise UnreadableImage(
            f"{first['id']}: {first['reason']} ({len(left_out)} in all); repair or remove it, or run without --strict"
        )


def _check_outside(out: Path, images: str | Path) -> None:
    source = Path(images).resolve()
    if source.is_dir() and out.resolve().is_relative_to(source):
        raise InputError(f"--out {out}: lies inside the images ({images}), where it would be taken for a class")


@contextmanager
def _only_one(out: Path) -> Iterator[None]:
    """Keep a second extraction away from the same output."""
    out.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(out.with_name(f".{out.name}.lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(f"{out}: another extraction is writing it; wait for that, or choose another --out") from None
    try:
        yield
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


@contextmanager
def _full_disk_explained(partial: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise InputError(
            f"{partial}: the disk is full ({error.strerror}); the finished parts are kept: make room and run the same "
            "command again"
        ) from error
