"""From images to a run folder whose backbone learnt too."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from ...core.arguments import typed
from ...core.count_limits import check_at_once, check_threads
from ...core.distributed import Processes
from ...core.errors import InputError
from ...core.files import check_outside
from ..features.images.image_set import ImageSet, open_images
from ..fitting import METRICS
from ..fitting.checkpoint import Checkpoint, CheckpointFolder
from ..run import Run
from ..settings_file import read_from, read_settings
from ..tensorboard import epoch_log
from ..unfinished_run import unfinished, was_cut
from ..unused_settings import refuse_unused
from .augmentation import training_recipe
from .fit import Fit
from .pictures import TRAIN, DividedPictures, read_pictures
from .resolved_settings import resolve
from .settings import FinetuneConfig
from .start import NetworkChoice, Start, find_start
from .writing import check_finite, write_tuned


@typed
def finetune(
    images: str | Path | ImageSet,
    *,
    out: str | Path,
    backbone: str | None = None,
    checkpoint: str | Path | None = None,
    image_size: int | None = None,
    from_scratch: bool = False,
    image_column: str | None = None,
    label_column: str | None = None,
    workers: int | None = None,
    config: str | Path | None = None,
    tensorboard: str | Path | None = None,
    overwrite: bool = False,
    **settings: Annotated[Any, FinetuneConfig],
) -> Run:
    """Train a whole network on images, and write a run folder that every later command reads.

    With ``start`` the network begins as a classifier that `headsmith.train` made: first the head, then the backbone
    (LP-FT: Kumar et al., ICLR 2022). Images are divided, and kept apart, as `headsmith.extract` does it. After every
    epoch the validation split is scored, and the best epoch is kept (see `FinetuneConfig.select`), the start among
    them; the test split is scored once. An unfinished run is kept in ``OUT.partial``; the same call goes on from there,
    on a CPU to the same bits.

    Args:
        images: Folder of class folders, or a `datasets` folder or name; or what `open_images` gave.
        out: The run folder to make; its ``backbone.safetensors`` is the new backbone.
        backbone: ``lite0``, ``timm:NAME``, ``torchvision:NAME[/WEIGHTS]``, ``cifar:resnet18`` or a fine-tuned run; by
            default that of ``start``, or else ``lite0``.
        checkpoint: Local weights for the backbone.
        image_size: Another crop edge in pixels than the backbone's own.
        from_scratch: Begin with random weights.
        image_column: Column with the images of a `datasets` source.
        label_column: Column with the labels of a `datasets` source.
        workers: How many images are decoded at once; by default one for each CPU that this process may use.
        config: A YAML file with settings; those given here by name win.
        tensorboard: Folder for TensorBoard's curves.
        overwrite: Replace an existing run folder, and an unfinished one of other settings.
        settings: The fields of `FinetuneConfig`.

    Returns:
        The run.

    Raises:
        InputError: Bad images, backbone, start or settings; an ``out`` that exists; a batch that does not fit the
            memory; a loss that was never finite.
    """
    if workers is not None:
        check_threads("--workers", workers)
    out = Path(out)
    read = {} if config is None else read_settings(config, FinetuneConfig)
    with read_from(config, read.keys() - settings.keys()):
        chosen = FinetuneConfig(**(read | settings))
        refuse_unused(chosen, read, settings)
    check_at_once("--batch-size", chosen.batch_size)
    processes = Processes.launched(chosen.device)
    if processes.count > 1:
        raise InputError(f"torchrun: {processes.count} processes found; a network is fine-tuned by one, on one device")
    if not isinstance(images, ImageSet):
        check_outside(out, images)
        images = open_images(images, image_column=image_column, label_column=label_column)
    choice = NetworkChoice(backbone, checkpoint, image_size, from_scratch)
    start = find_start(chosen.start, choice, images.class_names, chosen.seed)
    recipe, classes = start.backbone.preprocessing, len(images.class_names)
    with read_from(config, read.keys() - settings.keys()):
        training = sum(one.split == TRAIN for one in images.samples)
        resolved = resolve(chosen, classes, training, from_scratch=from_scratch)
    identity = _identity(resolved, start, images.fingerprint)

    if was_cut(out, lambda run: run.config == resolved and run.record.initialization == start.record):
        return Run.load(out)
    with unfinished(out, "fine-tuning", overwrite, processes) as folder, epoch_log(tensorboard) as log:
        pictures = read_pictures(images, training_recipe(recipe, resolved.augmentation), recipe, workers)
        _check_size(pictures, resolved, recipe.crop_size)
        fit = Fit(start, resolved, pictures.splits, classes, log)
        fit.run(Checkpoint(CheckpointFolder(folder, overwrite=overwrite), identity), folder / METRICS)
        tuned = fit.tuned()
        check_finite(tuned)
        write_tuned(out, tuned, start, images, pictures, folder / METRICS, overwrite)
    return Run.load(out)


def _identity(config: FinetuneConfig, start: Start, images: str) -> dict[str, Any]:
    """What an unfinished run must share to be gone on with."""
    return asdict(config) | {
        "images": images,
        "backbone": start.network.spec,
        "backbone_sha256": start.backbone.weights_sha256,
        "preprocessing": start.backbone.preprocessing.digest,
        "initialization": asdict(start.record),
    }


def _check_size(pictures: DividedPictures, config: FinetuneConfig, crop: tuple[int, int]) -> None:
    """Refuse to shift images by a few pixels that were enlarged."""
    if config.augmentation == "cifar" and pictures.smallest < max(crop):
        raise InputError(
            f"--augmentation: cifar found, which shifts images by 4 pixels, but the smallest one has a shorter edge of "
            f"{pictures.smallest} pixels, the crop {max(crop)}; expected larger images, `image_size` "
            f"{pictures.smallest}, or crop-flip"
        )
