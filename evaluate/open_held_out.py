"""Open what classifiers are measured on: labelled images or features that no training saw."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..core.errors import InputError
from ..export.held_out import HeldOut, HeldOutFeatures, HeldOutImages
from ..export.provenance import TrainedOn
from ..export.runtime import Array
from ..export.training_source import same_source
from ..trainer.features.images.image_set import ImageSet, open_images
from ..trainer.features.manifest import is_feature_set
from .held_out_record import HeldOutSource
from .truth_file import class_names_of, labelled_by, renamed

COLUMNS = ("image_column", "label_column")
SAID = ("truth", "class_ids", "group_column")


def open_data(source: HeldOutSource) -> HeldOut:
    """Open a held-out set.

    Raises:
        InputError: No such data, nothing in it, or parts that do not fit together.
    """
    data, truth, part = source.data, source.truth, source.part
    where = Path(data).expanduser()
    if is_feature_set(where):
        _unread(f"{data}: is a feature set, which holds its labels and class names", source, *SAID, *COLUMNS)
        from ..trainer.features.feature_set import FeatureSet
        from ..trainer.features.leak_warnings import leaks

        features = FeatureSet.load(where)
        return HeldOutFeatures(features, given=data, warnings=tuple(leaks(features)))
    if where.is_file():
        raise InputError(
            f"{data}: is a file, expected a folder of images; features are measured as a feature set, which `headsmith "
            "import` makes of a file"
        )
    if truth is not None:
        _unread(f"{truth}: says the labels of a folder of images, not of a data set with columns", source, *COLUMNS)
        return replace(labelled_by(Path(truth), where, source.class_ids, source.group_column), given=data)
    if part is False:
        images = open_images(data, **source.columns, splits=False)
    else:
        images = open_images(data, **source.columns, together=part if isinstance(part, Mapping) else False)
        images = images.split("test")
    if not len(images):
        raise InputError(f"{data}: no held-out image in it")
    ids, column = class_names_of(source.class_ids), source.group_column
    groups = None if column is None else _groups(images, data, column)
    return HeldOutImages(images if ids is None else renamed(images, ids, data), given=data, groups=groups)


def part_trained_on(source: HeldOutSource, origins: Sequence[TrainedOn]) -> bool | dict[str, str]:
    """Whether a head was trained on a part of this very source, so that only its held-out part may be measured.

    Args:
        source: What was asked for.
        origins: Manifests of the bundles that are measured.

    Returns:
        ``part`` of `HeldOutSource`.
    """
    for origin in origins if source.truth is None else ():
        trained_on = origin.features.source
        if trained_on is not None and same_source(source.data, origin, **source.columns) is not None:
            return True if trained_on.together is None else trained_on.together
    return False


def _unread(why: str, source: HeldOutSource, *names: str) -> None:
    """Refuse settings that this kind of data does not read.

    Raises:
        InputError: One of them was given.
    """
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(source, name) is not None]
    if given:
        raise InputError(f"{why}; leave out {' and '.join(given)}")


def _groups(images: ImageSet, data: str, column: str) -> list[str]:
    """The group of each image, from a column of a `datasets` source."""
    if images.source.image_column is None:
        raise InputError(f"--group-column: {data} has no columns; name a `datasets` source, or a CSV file with --truth")
    from ..trainer.features.images.datasets_source import load, plain_column

    name, found = load(data)
    tables = found if isinstance(found, Mapping) else {"train": found}
    splits = {sample.id.partition("/")[0] for sample in images.samples}
    values: dict[str, Array] = {}
    for split, table in tables.items():
        plain_column(table.features, column, "--group-column", name)
        values[split] = np.asarray(table[column][:])
    own = {split: split for split in values}
    if not splits <= values.keys():
        from ..trainer.features.images.samples import by_split

        own = by_split(values, name)
    return [str(values[own[split]][int(row)]) for split, _, row in (one.id.partition("/") for one in images.samples)]
