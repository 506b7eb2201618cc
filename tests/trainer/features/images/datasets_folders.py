"""Made-up data sets, and what is expected of those that may not be opened."""

import io

import datasets
import pyarrow as pa
import pytest
from PIL import Image

from headsmith.core.errors import InputError
from headsmith.trainer.features import open_images

NAMED = datasets.ClassLabel(names=["cat", "dog"])


def encoded(width=8, height=8, mode="RGB"):
    file = io.BytesIO()
    Image.new(mode, (width, height)).save(file, "png")
    return file.getvalue()


PNG = encoded()


def dataset(images, labels=None, label=NAMED):
    rows = [one if isinstance(one, dict) else {"bytes": one, "path": None} for one in images]
    features = datasets.Features({"image": datasets.Image(), "label": label})
    table = pa.table(
        {"image": pa.array(rows, datasets.Image().pa_type), "label": labels or [row % 2 for row in range(len(rows))]}
    )
    return datasets.Dataset(table.cast(features.arrow_schema))


def refused(folder, match):
    with pytest.raises(InputError, match=match) as error:
        open_images(folder, splits=False)
    assert "\n" not in str(error.value) and str(folder) in str(error.value)
