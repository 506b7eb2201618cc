"""Folders that were made to let `datasets` do harm: each does it under `datasets` alone, and is refused in one line."""

import json
import os
import shutil
import warnings

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets_folders import PNG, dataset, encoded, refused
from PIL import Image

from headsmith.core.errors import InputError
from headsmith.evaluate.held_out_record import HeldOutSource
from headsmith.evaluate.open_held_out import open_data
from headsmith.models import images
from headsmith.models.images import UnreadableImage
from headsmith.trainer.features import open_images, size_limits
from headsmith.trainer.features.images.datasets_source import load

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def saved(tmp_path):
    dataset([PNG] * 6).save_to_disk(tmp_path / "set")
    return tmp_path / "set"


def edit(path, change):
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def of_type(**feature):
    return lambda info: info["features"].update(extra=feature)


def test_a_type_that_is_a_function_of_pyarrow_is_not_called(saved, tmp_path, monkeypatch):
    # One of them, `create_library_symlinks`, writes files into the folder of pyarrow.
    marker = tmp_path / "marker"
    monkeypatch.setattr(pa, "create_library_symlinks", marker.touch)
    edit(saved / "dataset_info.json", of_type(_type="Value", dtype="create_library_symlinks"))
    with pytest.raises(Exception):  # noqa: B017 - what it does afterwards does not matter
        datasets.load_from_disk(str(saved))
    assert marker.exists()  # it is an attack
    marker.unlink()
    refused(saved, "dataset_info.json: dtype: 'create_library_symlinks' found, expected a type of Arrow")
    assert not marker.exists()


@pytest.mark.parametrize(
    ("feature", "match"),
    [
        ({"_type": "Path"}, "_type: 'Path' found, expected a kind of column"),
        ({"_type": "Array2D", "shape": [1, 1], "dtype": "show_versions"}, "dtype: 'show_versions' found"),
        ({"_type": "Value", "dtype": ["int64"]}, "dtype: .*found, expected a type of Arrow"),
        ({"inner": [{"_type": "Value", "dtype": "log_memory_allocations"}]}, "dtype: 'log_memory_allocations' found"),
    ],
)
@pytest.mark.parametrize("place", ["dataset_info.json", "arrow", "parquet"])
def test_columns_that_name_more_than_a_type(saved, tmp_path, feature, match, place):
    if place == "dataset_info.json":
        edit(saved / place, of_type(**feature))
        return refused(saved, f"dataset_info.json: {match}")
    (rows,) = saved.glob("*.arrow")
    with pa.ipc.open_stream(rows.read_bytes()) as reader:
        table = reader.read_all()
    known = json.loads(table.schema.metadata[b"huggingface"])
    of_type(**feature)(known["info"])
    table = table.replace_schema_metadata({b"huggingface": json.dumps(known)})
    if place == "arrow":
        with pa.ipc.new_stream(rows, table.schema) as writer:
            writer.write_table(table)
        return refused(saved, rf"\.arrow: {match}")
    (tmp_path / "shop").mkdir()
    pq.write_table(table, tmp_path / "shop" / "train.parquet")
    return refused(tmp_path / "shop", rf"train\.parquet: {match}")


@pytest.mark.parametrize("name", ["../other/rows.arrow", "{other}/rows.arrow", "..", "s3://x/rows.arrow", "x\0y"])
def test_rows_of_another_folder(saved, tmp_path, name):
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(next(saved.glob("*.arrow")), other / "rows.arrow")
    edit(saved / "state.json", lambda state: state["_data_files"][0].update(filename=name.format(other=other)))
    if name.startswith(("../", "{")):
        assert len(datasets.load_from_disk(str(saved))) == 6  # it is an attack
    refused(saved, r"state\.json: names .*, expected something in that folder")


@pytest.mark.parametrize("split", ["../set", "/", "a/b", ".."])
def test_a_split_of_another_folder(saved, tmp_path, split):
    folder = tmp_path / "divided"
    folder.mkdir()
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": [split]}))
    refused(folder, r"dataset_dict\.json: names .*, expected something in that folder")


def test_offsets_beyond_the_buffer_under_any_name(saved):
    """pyarrow ends with SIGSEGV where such values are read; see test_arrow_streams.py."""
    (rows,) = saved.glob("*.arrow")
    content = rows.read_bytes()
    lengths = np.cumsum([0] + [len(PNG)] * 6).astype("<i4").tobytes()
    assert content.count(lengths) == 1
    rows.unlink()
    (saved / "rows.bin").write_bytes(content.replace(lengths, lengths[:-4] + b"\xff\xff\xff\x7f"))
    edit(saved / "state.json", lambda state: state["_data_files"][0].update(filename="rows.bin"))
    refused(saved, r"rows\.bin: truncated, damaged")


@pytest.mark.parametrize("format", ["torch", "custom", "nothing"])
def test_a_format_of_the_file_is_not_used(saved, format):
    edit(saved / "state.json", lambda state: state.update(_format_type=format, _format_kwargs={"dtype": "x"}))
    if format == "torch":
        assert open_images(saved, splits=False).read(0).size == (8, 8)
    else:
        refused(saved, "not a data set that `datasets` can load")


@pytest.mark.parametrize("state", ["[]", "{}", '{"_data_files": 1}', '{"_data_files": [1]}', "[" * 9000, "x"])
def test_records_of_other_shapes(saved, state):
    (saved / "state.json").write_text(state)
    refused(saved, r"state\.json: ")


CARD = "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: {path}\n---\n"


@pytest.mark.parametrize("card", ["README.md", ".huggingface.yaml"])
def test_a_card_names_no_files(tmp_path, card):
    for name, count in (("shop", 6), ("secret", 4)):
        (tmp_path / name).mkdir()
        dataset([PNG] * count).to_parquet(tmp_path / name / "test.parquet")
    text = CARD.format(path=tmp_path / "secret" / "test.parquet")
    (tmp_path / "shop" / card).write_text(text if card == "README.md" else text.strip("-\n"))
    assert len(datasets.load_dataset(str(tmp_path / "shop"))["test"]) == 4  # it is an attack
    assert len(open_images(tmp_path / "shop", splits=False)) == 6


def test_a_card_and_a_script_ask_no_server(tmp_path):
    (tmp_path / "shop").mkdir()
    dataset([PNG] * 6).to_parquet(tmp_path / "shop" / "test.parquet")
    (tmp_path / "shop" / "README.md").write_text(CARD.format(path="http://127.0.0.1:9/x.parquet"))
    (tmp_path / "shop" / "shop.py").write_text("raise SystemExit('ran')")
    assert len(open_images(tmp_path / "shop", splits=False)) == 6


def test_images_elsewhere_are_not_read(tmp_path, monkeypatch):
    Image.new("RGB", (9, 9)).save(tmp_path / "secret.png")
    folder = tmp_path / "shop"
    folder.mkdir()
    Image.new("RGB", (7, 7)).save(folder / "own.png")
    names = [str(tmp_path / "secret.png"), "../secret.png", "http://127.0.0.1:9/x.png", "/dev/zero", "own.png", "a\0b"]
    data = dataset([{"bytes": None, "path": name} for name in names])
    assert data[0]["image"].size == (9, 9)  # it is an attack
    pq.write_table(data.data.table, folder / "test.parquet")
    found = open_images(folder, splits=False)
    for row, name in enumerate(names[:2]):
        with pytest.raises(UnreadableImage, match=f"test/{row}: is .*{name[-10:]}, expected an image in {folder}"):
            found.read(row)
    for row in (2, 3, 5):
        with pytest.raises(UnreadableImage):
            found.read(row)
    assert found.read(4).size == (7, 7)
    assert len(found.fingerprint) == 64


def test_metadata_that_names_images_elsewhere(tmp_path):
    Image.new("RGB", (9, 9)).save(tmp_path / "secret.png")
    (tmp_path / "shop").mkdir()
    for name in ("a.png", "b.png"):
        Image.new("RGB", (8, 8)).save(tmp_path / "shop" / name)
    rows = [("a.png", 0), ("b.png", 1), ("../secret.png", 0)]
    text = "\n".join(json.dumps({"file_name": name, "label": label}) for name, label in rows)
    (tmp_path / "shop" / "metadata.jsonl").write_text(text)
    try:
        found = open_images(tmp_path / "shop", splits=False)
    except InputError as error:  # newer versions of `datasets` refuse it themselves
        assert "secret.png" in str(error) and "\n" not in str(error)
    else:
        with pytest.raises(UnreadableImage, match="expected an image in"):
            found.read(2)


@pytest.mark.parametrize("size", [(1, 100_000), (13_000, 13_000)])
def test_bytes_in_a_table_have_the_bounds_of_images_in_files(tmp_path, size):
    (tmp_path / "shop").mkdir()
    dataset([encoded(*size, "1"), PNG] * 3).to_parquet(tmp_path / "shop" / "test.parquet")
    found = open_images(tmp_path / "shop", splits=False)
    with warnings.catch_warnings(), pytest.raises(UnreadableImage, match=rf"test/0: {size[0]} x {size[1]} pixels"):
        warnings.simplefilter("ignore")  # of PIL, which the command line never shows
        found.read(0)
    assert found.read(1).size == (8, 8)


@pytest.mark.parametrize("column", ["bytes", "label"])
def test_a_value_that_a_small_file_repeats(tmp_path, monkeypatch, column):
    """100 kB that stand in the file once are 20 MB as `datasets` would write them; so are 5 MB and 1 GB."""
    monkeypatch.setattr(size_limits, "SAFE_BYTES", 16 << 20)
    (tmp_path / "shop").mkdir()
    once, often = pa.array([os.urandom(50_000).hex()]), pa.array(np.zeros(200, np.int32))
    text = pa.DictionaryArray.from_arrays(often, once)
    if column == "bytes":
        kind = datasets.Image().pa_type
        text = pa.DictionaryArray.from_arrays(often, once.cast(pa.binary()))
        paths = pa.nulls(200, pa.string())
        columns = {"image": pa.StructArray.from_arrays([text.cast(pa.binary()), paths], fields=list(kind))}
    else:
        columns = {"image": pa.array([{"bytes": PNG, "path": None}] * 200), "label": text}
    pq.write_table(pa.table(columns), tmp_path / "shop" / "test.parquet", store_schema=False)
    packed = (tmp_path / "shop" / "test.parquet").stat().st_size
    assert packed < 200_000  # it is an attack
    refused(tmp_path / "shop", r"test\.parquet: [\d,]+ bytes that unpack to 20,0\d\d,\d{3}")


def test_class_names_that_stand_twice_in_parquet_are_named(tmp_path):
    (tmp_path / "shop").mkdir()
    noted = {"info": {"features": {"label": {"names": ["ant", "bee", "ant"], "_type": "ClassLabel"}}}}
    table = pa.table({"image": pa.array([{"bytes": PNG, "path": None}] * 2), "label": [0, 1]})
    table = table.replace_schema_metadata({"huggingface": json.dumps(noted)})
    pq.write_table(table, tmp_path / "shop" / "test.parquet")
    refused(tmp_path / "shop", r"test\.parquet: names: 'ant' found twice, expected each class name once")


def test_parquet_of_images_without_the_notes_of_datasets(tmp_path):
    """The layout that `datasets` gives images, struct<bytes: binary, path: string>, as others write it too."""
    (tmp_path / "shop").mkdir()
    rows = [{"bytes": PNG, "path": f"{row}.png"} for row in range(6)]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = pa.table({"image": pa.array(rows, kind), "label": ["cat", "dog"] * 3})
    pq.write_table(table, tmp_path / "shop" / "test.parquet")
    found = open_images(tmp_path / "shop", splits=False)
    assert (len(found), found.class_names, found.read(5).size) == (6, ["cat", "dog"], (8, 8))


def test_a_link_out_of_the_folder_is_not_opened(tmp_path, capfd):
    folder = tmp_path / "flat"
    folder.mkdir()
    (tmp_path / "secret.png").write_bytes(PNG)
    for row in range(4):
        (folder / f"{row}.png").write_bytes(PNG)
    (folder / "4.png").symlink_to(tmp_path / "secret.png")
    (folder / "5.png").symlink_to(folder / "0.png")
    rows = [json.dumps({"file_name": f"{row}.png", "label": "ab"[row % 2]}) for row in range(6)]
    (folder / "metadata.jsonl").write_text("\n".join(rows))
    found = open_images(folder)
    assert "Generating" not in capfd.readouterr().err  # a bar of `datasets`, which is for terminals
    for index, sample in enumerate(found.samples):
        if sample.id == "train/4":
            with pytest.raises(UnreadableImage, match="train/4: is .*expected an image in"):
                found.read(index)
        else:
            assert found.read(index).size == (8, 8)


def test_an_archive_beside_images_is_not_unpacked(tmp_path):
    folder = tmp_path / "flat"
    folder.mkdir()
    Image.new("RGB", (8, 8)).save(folder / "0.png")
    (folder / "metadata.jsonl").write_text('{"file_name": "0.png", "label": "a"}')
    shutil.make_archive(str(folder / "more"), "zip", folder, "0.png")
    assert len(load(folder)[1]["train"]) == 1


def test_most_files_decide_how_a_folder_is_read(tmp_path):
    """Nothing but the four kinds is read, however many files of another kind lie there."""
    dataset([PNG] * 6).to_parquet(tmp_path / "test.parquet")
    for number in range(9):
        (tmp_path / f"{number}.h5").write_bytes(b"x")
        (tmp_path / f"{number}.csv").write_text("a,b\n1,2")
    assert len(load(tmp_path)[1]["test"]) == 6


def test_a_pipe_among_the_files_does_not_hang(tmp_path):
    (tmp_path / "shop").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "shop" / "test.parquet").symlink_to(tmp_path / "pipe")
    refused(tmp_path / "shop", "test.parquet: is a named pipe|holds no data files")


def test_labels_are_not_opened_as_images(saved):
    for column in ({"label_column": "image"}, {"group_column": "image"}):
        with pytest.raises(InputError, match=r"column`? image holds Image.*, expected numbers or text"):
            open_data(HeldOutSource(str(saved), **column))


def test_an_image_in_a_table_may_not_be_larger_than_one_in_a_file(monkeypatch):
    monkeypatch.setattr(images, "MOST_BYTES", len(PNG) - 1)
    with pytest.raises(UnreadableImage, match="x: is larger than 0 MiB, expected an image"):
        images.open_image(PNG, "x")
