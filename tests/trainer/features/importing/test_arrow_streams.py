"""Arrow files whose offsets lie: refused before anything follows them."""

import struct

import datasets
import numpy as np
import pyarrow as pa
import pytest

from headsmith.core.errors import InputError
from headsmith.trainer import FeatureSet, import_features
from headsmith.trainer.features.images.image_set import open_images

ROWS = 30


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def table():
    lists = pa.array(
        np.random.default_rng(0).normal(size=(ROWS, 4)).astype(np.float32).tolist(), pa.list_(pa.float32())
    )
    return pa.table({"x": lists, "label": [f"class {row % 3}" for row in range(ROWS)]})


def write(path, rows, kind="file"):
    make = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with pa.OSFile(str(path), "wb") as sink, make(sink, rows.schema) as writer:
        writer.write_table(rows)


def with_offset(path, values, place, value):
    """The file with one of the int32 offsets of a column changed; the column's offsets are found by what they are."""
    content = bytearray(path.read_bytes())
    start = content.index(np.asarray(values, np.int32).tobytes())
    struct.pack_into("<i", content, start + 4 * place, value)
    path.write_bytes(content)


LISTS, TEXT = np.arange(ROWS + 1) * 4, np.arange(ROWS + 1) * len("class 0")
OFFSETS = [(LISTS, 7, 2**30), (LISTS, 7, -5), (TEXT, 7, 2**30), (TEXT, ROWS, 2**31 - 1), (TEXT, 3, -1), (LISTS, 5, 2)]


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize(("values", "place", "value"), OFFSETS)
def test_offsets_beyond_a_buffer(tmp_path, kind, values, place, value):
    path = tmp_path / "x.arrow"
    write(path, table(), kind)
    import_features(path, out="healthy")
    with_offset(path, values, place, value)
    with pytest.raises(InputError, match=r"x\.arrow: truncated, damaged or not \.arrow") as error:
        import_features(path, out="out")
    assert str(error.value).isprintable()


@pytest.mark.parametrize(("values", "place", "value"), OFFSETS)
def test_offsets_beyond_a_buffer_in_a_folder_of_datasets(tmp_path, values, place, value):
    datasets.Dataset(table()).save_to_disk("saved")
    (path,) = (tmp_path / "saved").glob("*.arrow")
    with_offset(path, values, place, value)
    with pytest.raises(InputError, match=r"\.arrow: truncated, damaged or not \.arrow"):
        import_features("saved", out="out")
    with pytest.raises(InputError, match=r"\.arrow: truncated, damaged or not \.arrow"):
        open_images("saved")


@pytest.mark.parametrize(("place", "value"), [(7, 2**30), (ROWS * 8 // 10, 2**31 - 1), (3, -1)])
def test_offsets_beyond_a_buffer_in_a_feature_set(tmp_path, place, value):
    ids = [f"row {row:03}" for row in range(ROWS)]
    FeatureSet.from_arrays(np.zeros((ROWS, 4)), np.arange(ROWS) % 3, ids=ids, out="set")
    (path,) = (tmp_path / "set" / "train").glob("*.arrow")
    with_offset(path, np.arange(ROWS * 8 // 10 + 1) * len("row 000"), place, value)
    with pytest.raises(InputError, match=r"\.arrow: damaged .*make it again"):
        FeatureSet.load("set")


def test_dictionary_indices_beyond_the_dictionary(tmp_path):
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2] * 10, pa.int32()), pa.array(["a", "b", "c"]))
    path = tmp_path / "x.arrow"
    write(path, pa.table({"x": table()["x"], "label": labels}))
    assert import_features(path, out="healthy").class_names == ["a", "b", "c"]
    with_offset(path, [0, 1, 2] * 10, 4, 10**9)
    with pytest.raises(InputError, match=r"x\.arrow: truncated, damaged"):
        import_features(path, out="out")


def test_columns_of_one_name(tmp_path):
    pair = pa.table([table()["x"], table()["x"], table()["label"]], names=["x", "x", "label"])
    write(tmp_path / "x.arrow", pair)
    with pytest.raises(InputError, match=r"x\.arrow: has the column 'x' twice"):
        import_features("x.arrow", out="out")
