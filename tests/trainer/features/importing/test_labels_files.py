"""An array goes with the labels that were named with it, else with those of its own name, else with the only ones."""

import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headsmith.core.errors import InputError
from headsmith.trainer import import_features

from .planted import check_aligned, planted

ROWS, MORE = planted(40), planted(40, first=40)
OTHER = (ROWS.labels + 1) % 5


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("feats.npy", ROWS.features)


def labels(*files):
    """How far the labels are from the planted ones."""
    found = import_features(files, out="set", overwrite=True)
    names = np.concatenate([found.arrays(split)[1].numpy() for split in found.splits])
    rows = np.concatenate([found.arrays(split)[0][:, 0].numpy() for split in found.splits])
    return set(((names - rows) % 5).astype(int))


def test_the_array_s_own_name_wins_over_other_names():
    np.save("feats_labels.npy", ROWS.labels)
    np.save("y.npy", OTHER)
    pq.write_table(pa.table({"label": OTHER}), "metadata.parquet")
    assert labels("feats.npy") == labels("feats.npy", "feats_labels.npy") == labels(".") == {0}
    np.save("feats_labels.npy", ROWS.labels[:, None])
    assert labels("feats.npy") == {0}


def test_what_was_named_wins_over_all():
    np.save("feats_labels.npy", ROWS.labels)
    np.save("y.npy", OTHER)
    assert labels("feats.npy", "y.npy") == labels("y.npy", "feats.npy") == labels("train=feats.npy", "y.npy") == {1}
    np.save("whatever.npy", (ROWS.labels + 2) % 5)
    assert labels("feats.npy", "whatever.npy") == {2}


def test_a_table_that_was_named():
    np.save("labels.npy", ROWS.labels)
    pq.write_table(pa.table({"label": OTHER}), "metadata.parquet")
    assert labels("feats.npy", "metadata.parquet") == {1}


def test_what_is_not_clear_says_how_to_name_it():
    np.save("y.npy", OTHER)
    np.save("labels.npy", ROWS.labels)
    with pytest.raises(InputError, match=r"several files of labels: labels.npy, y.npy; name the right one") as caught:
        import_features("feats.npy", out="set")
    said = re.search("where it is imported: (.*)$", str(caught.value))
    assert labels(*shlex.split(said[1])) == {1}


def test_several_arrays_and_their_labels():
    np.save("more_feats.npy", MORE.features)
    np.save("y.npy", ROWS.labels)
    np.save("feats_labels.npy", ROWS.labels)
    np.save("more_y.npy", MORE.labels)
    found = import_features(sorted(map(str, Path().glob("*.npy"))), out="set")
    assert check_aligned(found) == set(range(80))


def test_no_labels():
    with pytest.raises(InputError, match=r"no labels beside it; expected one of feats_labels.npy, .* LABELS.npy"):
        import_features("feats.npy", out="set")


@pytest.mark.parametrize("first", ["emb_9.npy", "train=z.npy"])
def test_one_file_of_labels_for_several_arrays(first):
    np.save(first.removeprefix("train="), ROWS.features)
    np.save("emb_10.npy", planted(25, first=40).features)
    np.save("labels.npy", np.r_[ROWS.labels, planted(25, first=40).labels])
    second = "test=emb_10.npy" if "=" in first else "emb_10.npy"
    found = import_features([first, second, "labels.npy"], out="set")
    assert check_aligned(found) == set(range(65))
    assert found.manifest.splits["test"] == (25 if "=" in first else 5)
    np.save("emb_10.npy", planted(24, first=40).features)
    name = first.removeprefix("train=")
    with pytest.raises(InputError, match=rf"labels.npy: 65 labels, .* 64 rows together \({name} 40, emb_10.npy 24\)"):
        import_features([first, second, "labels.npy"], out="other")


def test_numbered_arrays_in_the_order_of_a_shell_are_not_given_labels_of_other_rows():
    for shard in range(9, 11):
        np.save(f"emb_{shard}.npy", planted(20, first=20 * shard).features)
    np.save("labels.npy", planted(40, first=180).labels)
    named = sorted(map(str, Path().glob("emb_*.npy")))
    with pytest.raises(InputError, match=r"emb_10.npy: named before emb_9.npy, .* by rising numbers"):
        import_features([*named, "labels.npy"], out="set")
    assert check_aligned(import_features([*named[::-1], "labels.npy"], out="set")) == set(range(180, 220))
