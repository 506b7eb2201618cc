"""Small files that stand for more than a machine holds: refused with both numbers, before anything is unpacked."""

import struct
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import torch
from numpy.lib import format as npy

from headsmith.core.errors import InputError
from headsmith.trainer import import_features
from headsmith.trainer.features import size_limits
from headsmith.trainer.features.arrow_stream import ArrowStream, unpacked_size

ROWS, D = 20_000, 50
SIZE = ROWS * D * 4


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    """The bound lowered from 512 MiB, so that small bombs do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(size_limits, "SAFE_BYTES", 1 << 20)


def archive(path, **arrays):
    """An archive of zeros; a header and its number of bytes for each array."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, (shape, descr, fortran, size) in arrays.items():
            with file.open(f"{name}.npy", "w") as member:
                npy.write_array_header_2_0(member, {"descr": descr, "fortran_order": fortran, "shape": shape})
                member.write(bytes(size))


def zeros(rows=ROWS):
    return pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * D, np.float32)), D)


def npz_fortran():
    archive("x.npz", x=((ROWS, D), "<f4", True, SIZE), y=((ROWS,), "<i8", False, ROWS * 8))
    return "x.npz"


def npz():
    archive("x.npz", x=((ROWS, D), "<f4", False, SIZE), y=((ROWS,), "<i8", False, ROWS * 8))
    return "x.npz"


def parquet():
    pq.write_table(pa.table({"x": zeros(), "y": np.zeros(ROWS, int)}), "x.parquet")
    return "x.parquet"


def feather_zstd():
    feather.write_feather(pa.table({"x": zeros(), "y": np.zeros(ROWS, int)}), "x.feather", compression="zstd")
    return "x.feather"


def torch_expanded():
    torch.save({"x": torch.zeros(1).expand(ROWS, D), "y": torch.zeros(1, dtype=torch.int8).expand(ROWS)}, "x.pt")
    return "x.pt"


@pytest.mark.parametrize("write", [npz, npz_fortran, parquet, feather_zstd, torch_expanded])
def test_what_unpacks_to_a_hundred_times_its_size(write):
    path = write()
    with pytest.raises(InputError, match=rf"{path}.*: [\d,]+ bytes that unpack to [\d,]+, expected at most 100 times"):
        import_features(path, out="out")


@pytest.mark.parametrize("write", [npz, npz_fortran, parquet, feather_zstd])
def test_below_the_bound_the_same_files_are_read(write, monkeypatch):
    monkeypatch.setattr(size_limits, "SAFE_BYTES", 1 << 29)
    with pytest.raises(InputError, match="the training rows have one class only"):
        import_features(write(), out="out")


def test_what_compressed_messages_say_is_what_they_hold():
    """300 rows of 50 float32 and an int64, in each of three compressed batches, and 100 in the last one."""
    table = pa.table({"x": zeros(1000), "y": np.zeros(1000, int)})
    feather.write_feather(table, "x.feather", compression="lz4", chunksize=300)
    with ArrowStream(Path("x.feather"))._source() as source:
        sizes = [unpacked_size(message) for message in pa.ipc.MessageReader.open_stream(source)]
    assert sizes == [0, *[300 * (D * 4 + 8)] * 3, 100 * (D * 4 + 8)]


def test_labels_that_are_documents():
    archive("x.npz", x=((4, 2), "<f4", False, 32), y=((4,), "<U20000000", False, 0))
    with pytest.raises(InputError, match=r"x\.npz: y\.npy: truncated or damaged|text of 20,000,000 characters"):
        import_features("x.npz", out="out")
    text = pa.array(["x" * 5000]).take(pa.array([0] * 20))
    pq.write_table(pa.table({"x": zeros(20), "y": text}), "x.parquet")
    with pytest.raises(InputError, match=r"x\.parquet: y: text of 5,000 characters, expected at most 4,096"):
        import_features("x.parquet", out="out")


def test_rows_of_ten_million_values():
    lists = pa.ListArray.from_arrays(pa.array([0, 2_000_000, 4_000_000]), pa.array(np.zeros(4_000_000, np.float32)))
    pq.write_table(pa.table({"x": lists, "y": [0, 1]}), "x.parquet", compression=None, use_dictionary=False)
    with pytest.raises(InputError, match="x has 2,000,000 values in row 0, expected at most 1,048,576"):
        import_features("x.parquet", out="out")


@pytest.mark.parametrize(
    ("shape", "descr", "said"),
    [
        ((-4, 4), "<f4", r"shape \(-4, 4\) of float32 found, expected lengths of 0 or more"),
        ((4, -4), "<f4", r"shape \(4, -4\) of float32 found"),
        ((10**30, 4), "<f4", "240 bytes of values, its header says 16,000"),
        ((15, 5), "<f4", "240 bytes of values, its header says 300"),
        ((7, 4), "<f4", "240 bytes of values, its header says 112"),
        ((10**12,), "<U0", r"shape \(1000000000000,\) of <U0 found"),
        ((15, 4), "O", "holds pickled Python objects"),
        ((15, 4), "<f99", "truncated or no .npy file"),
        ((15, 2.5), "<f4", "truncated or no .npy file"),
    ],
)
def test_headers_of_arrays_that_lie(shape, descr, said):
    np.save("x_labels.npy", np.arange(15) % 3)
    with Path("x.npy").open("wb") as file:
        npy.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
        file.write(bytes(240))
    with zipfile.ZipFile("z.npz", "w") as file:
        file.write("x.npy")
        file.write("x_labels.npy", "y.npy")
    for path in ("x.npy", "z.npz"):
        with pytest.raises(InputError, match=rf"{path}.*{said}") as error:
            import_features(path, out="out")
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "begin", [b"\x93NUMPY\x09\x00v\x00", b"\x93NUMPY\x02\x00" + struct.pack("<I", 10**7), b"\x93NUMPY\x01\x00\xff\x7f"]
)
def test_headers_of_another_version_or_of_any_length(begin):
    np.save("x_labels.npy", np.arange(15) % 3)
    with Path("x.npy").open("wb") as file:
        file.write(begin + b"(" * 30_000 + bytes(10**6))
    with pytest.raises(InputError, match=r"x\.npy: truncated or no \.npy file"):
        import_features("x.npy", out="out")


def test_dictionaries_in_dictionaries_of_a_torch_file():
    nested = {"x": torch.zeros(4, 2)}
    for _ in range(30):
        nested = {"a": nested, "b": nested}
    torch.save(nested, "x.pt")
    with pytest.raises(InputError, match=r"x\.pt: more than 10,000 tensors"):
        import_features("x.pt", out="out")
    endless = {"x": torch.zeros(4, 2)}
    endless["y"] = endless
    torch.save(endless, "x.pt")
    with pytest.raises(InputError, match=r"x\.pt: its dictionaries are nested too deeply"):
        import_features("x.pt", out="out")
