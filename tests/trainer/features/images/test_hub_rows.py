"""Data sets of the hub that were made to do harm."""

import warnings

import datasets
import pytest
from datasets_folders import PNG, dataset, encoded

from headsmith.core.errors import InputError
from headsmith.models.images import UnreadableImage
from headsmith.trainer.features import open_images

pytestmark = pytest.mark.usefixtures("own_cache")


def from_the_hub(monkeypatch, found):
    monkeypatch.setattr("headsmith.core.hub._why_unreachable", lambda endpoint: "")
    monkeypatch.setattr(datasets, "load_dataset", lambda name: found)


@pytest.mark.parametrize("place", ["token", "../secret.png", "datasets/link.png"])
def test_a_row_of_the_hub_opens_nothing_beside_the_data(tmp_path, monkeypatch, place):
    """The folder around the caches holds the user's tokens."""
    home = tmp_path / "home"
    (home / "datasets" / "downloads").mkdir(parents=True)
    monkeypatch.setattr(datasets.config, "HF_CACHE_HOME", str(home))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(home / "datasets"))
    for path in (home / "token", tmp_path / "secret.png", home / "datasets" / "downloads" / "fine.png"):
        path.write_bytes(PNG)
    (home / "datasets" / "link.png").symlink_to(tmp_path / "secret.png")
    paths = [str(home / place), str(home / "datasets" / "downloads" / "fine.png")]
    rows = [{"bytes": None, "path": path} for path in paths]
    from_the_hub(monkeypatch, datasets.DatasetDict({"test": dataset(rows)}))
    found = open_images("someone/pets", splits=False)
    with pytest.raises(UnreadableImage, match="expected an image in"):
        found.read(0)
    assert found.read(1).size == (8, 8)


@pytest.mark.parametrize("size", [(1, 100_000), (13_000, 13_000)])
def test_images_of_the_hub_have_the_bounds_of_images_in_files(monkeypatch, size):
    from_the_hub(monkeypatch, datasets.DatasetDict({"test": dataset([encoded(*size, "1"), PNG])}))
    with warnings.catch_warnings(), pytest.raises(UnreadableImage, match=rf"test/0: {size[0]} x {size[1]} pixels"):
        warnings.simplefilter("ignore")
        open_images("someone/pets", splits=False).read(0)


def test_a_kind_of_column_that_somebody_registered_is_refused(monkeypatch):
    found = dataset([PNG] * 4)
    told = found.features.to_dict() | {"more": {"dtype": "os.system", "_type": "Value"}}
    monkeypatch.setattr(datasets.Features, "to_dict", lambda features: told)
    from_the_hub(monkeypatch, found)
    with pytest.raises(InputError, match="someone/pets: dtype: 'os.system' found, expected a type of Arrow"):
        open_images("someone/pets", splits=False)
