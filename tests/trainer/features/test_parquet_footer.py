"""What is read of a parquet footer is what pyarrow tells of a sound one."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headsmith.core.errors import InputError
from headsmith.trainer import import_features
from headsmith.trainer.features.parquet_footer import read_footer

N = 40
SIZES = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4}
NUMBERS = np.random.default_rng(0).normal(size=(N, 3))
TABLE = pa.table(
    {
        "x": NUMBERS.tolist(),
        "half": NUMBERS[:, 0].astype(np.float32),
        "flag": NUMBERS[:, 1] > 0,
        "byte": pa.array(range(N), pa.uint8()),
        "date": pa.array(range(N), pa.timestamp("us")),
        "label": [f"class {row % 4}" for row in range(N)],
        "pair": [{"a": row, "b": [str(row)]} for row in range(N)],
        "nothing": pa.nulls(N),
    }
)
OPTIONS = [
    {},
    {"row_group_size": 7},
    {"compression": "zstd", "use_dictionary": False},
    {"version": "1.0", "data_page_version": "2.0", "write_statistics": False},
    {"write_page_index": True, "write_page_checksum": True, "store_schema": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("rows", [0, N])
def test_it_tells_what_pyarrow_tells(tmp_path, options, rows):
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE.slice(0, rows).replace_schema_metadata({"k": "v" * 5000}), path, **options)
    about = pq.ParquetFile(path).metadata
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    expected = []
    for group in groups:
        columns = [group.column(place) for place in range(about.num_columns)]
        sizes = [one.num_values * SIZES.get(one.physical_type, 8) for one in columns]
        unpacked = [one.total_uncompressed_size for one in columns]
        repeated = [
            one.physical_type == "BYTE_ARRAY" and any("DICTIONARY" in name for name in one.encodings) for one in columns
        ]
        expected.append([(group.num_rows, *three) for three in zip(sizes, unpacked, repeated, strict=True)])
    assert read_footer(path) == expected


@pytest.mark.parametrize("repetition", [0, 4])  # required, repeated
@pytest.mark.parametrize("name", [b"label", b"element"])
def test_levels_that_do_not_fit_their_histogram_end_no_process(tmp_path, name, repetition):
    """Arrow's C++ raises where pyarrow says that it does not, which aborts."""
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE.select(["x", "label"]), path, store_schema=False)
    data = path.read_bytes()
    optional = b"\x25\x02\x18" + bytes([len(name)]) + name
    assert data.count(optional) == 1
    path.write_bytes(data.replace(optional, optional[:1] + bytes([repetition]) + optional[2:]))
    with pytest.raises(InputError, match=r"x\.parquet: ") as caught:
        import_features([path], out=tmp_path / "set")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("footer", "error"),
    [
        (b"", "IndexError|ends|index"),
        (b"\x4c\x1c\x18\xff\xff\xff\xff\x7f", "ends too early"),  # a text of 34 GB
        (b"\x46" + b"\xff" * 12, "more than 64 bits"),
        (b"\x49" + b"\x19" * 2000, "too deep"),
        (b"\x4c" + b"\x1c" * 2000, "too deep"),
        (b"\x49\x15\x00\x00", "other than structures"),
        (b"\x4d\x00", "a field of type 13"),
        (b"\x49\xfc\xff\xff\xff\x7f\x00", "index out of range"),  # a list of 268 million
        (b"\x26\x02\x06\x04\x02\x00", "field 2 is repeated"),
        (b"\x4c\x00\x0c\x08\x00\x00", "field 4 is repeated"),  # structures, which Arrow would put together
        (b"\x09\x88\x80\x08\x0c\x00\x00", "more than 16 bits"),  # field 65540, which Arrow takes for 4
        (b"\x15\x82\x80\x80\x80\x20\x00", "more than 32 bits"),  # 2**32 + 1, which Arrow takes for 1
    ],
)
def test_a_damaged_footer_is_an_error_that_can_be_caught(tmp_path, footer, error):
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises((ValueError, IndexError), match=error):
        read_footer(path)


def test_a_column_that_is_described_twice_is_refused(tmp_path):
    """pyarrow takes the first description's fields where the second lacks them; such a file is refused as a whole."""
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE.select(["x", "label"]), path, compression="none")
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    again = footer[:-1] + b"\x06\x06\x02\x00"  # field 3, the number of rows, once more: 1
    path.write_bytes(data[: -8 - length] + again + len(again).to_bytes(4, "little") + b"PAR1")
    assert pq.ParquetFile(path).metadata.num_rows == 1
    with pytest.raises(InputError, match=r"x\.parquet: .*field 3 is repeated"):
        import_features([path], out=tmp_path / "set")
