"""Features as text, as pandas, NumPy and Excel write them; and class names that lie beside the labels."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import save_file

from headsmith.core.errors import InputError
from headsmith.trainer import import_features

from .planted import planted

ROWS = planted(40)
NAMES = ["ant", "bee", "cat", "dog", "emu"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def frame(prefix="f"):
    columns = {f"{prefix}{place}": ROWS.features[:, place] for place in range(ROWS.features.shape[1])}
    return pd.DataFrame(columns | {"label": [NAMES[label] for label in ROWS.labels]})


def check(found):
    """Every row is where its first feature says, with its own label."""
    assert sum(found.manifest.splits.values()) == 40
    for split in found.splits:
        features, labels = found.arrays(split)
        rows = features[:, 0].long().numpy()
        np.testing.assert_allclose(features.numpy(), ROWS.features[rows], rtol=1e-5)
        assert [found.class_names[label] for label in labels] == [NAMES[label] for label in ROWS.labels[rows]]


@pytest.mark.parametrize("options", [{}, {"index": False}, {"sep": "\t"}, {"sep": ";", "decimal": ","}, {"sep": ";"}])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_tables_that_pandas_writes(options, encoding):
    frame().to_csv("x.csv", encoding=encoding, lineterminator="\r\n", **options)
    check(import_features("x.csv", out="out"))


def test_columns_that_are_only_numbered():
    frame("").to_csv("x.tsv", sep="\t", index=False)
    found = import_features("x.tsv", out="out")
    check(found)
    assert found.manifest.imported.columns["x.tsv"] == {"features": "*", "labels": "label"}


def test_text_stays_as_it_is_written():
    """Codes with zeros, words that are no truth values, and dates; a whole feature among fractions is a number."""
    for labels in (["007", "070"], ["true", "no"], ["2026-01-01", "2026-01-02"], ["NA", "null"]):
        rows = "".join(f"{row}.5,{row},{labels[row % 2]}\n" for row in range(20))
        with open("x.csv", "w") as file:  # noqa: PTH123
            file.write(f"f0,f1,label\n{rows}")
        assert import_features("x.csv", out="out", overwrite=True).class_names == sorted(labels)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.5,0.25,a\n0.5,0.5,b\n", r"line 1: 0.5 in it, expected a header such as f0, f1, label"),
        ("f0,f1,label\n", "line 1: no row below it"),
        ("f0,f0,label\n1,2,a\n", "has the column 'f0' twice"),
        ("f0,f1,label\n1.5,2.5,a\n1.5,b\n", "line 3: 2 columns, expected 3 as in line 1"),
        ('f0,f1,label\n1.5,2.5,"a\n1.5,2.5,b\n', "line 3: cannot be read as a row"),
        ("f0,f1,label\n" + "1.5,2.5,a\n" * 20 + "1.5,,b\n", "line 22: f1: '' found, expected a finite number"),
        ("label,name\na,b\n", "has no features .*columns f0, f1"),
    ],
)
def test_tables_that_cannot_be_read(text, said):
    with open("x.csv", "w") as file:  # noqa: PTH123
        file.write(text)
    with pytest.raises(InputError, match=rf"x\.csv.*: {said}|x\.csv: {said}") as error:
        import_features("x.csv", out="out")
    assert "\n" not in str(error.value)


def test_a_list_with_a_dictionary_for_every_sample():
    samples = [
        {"embedding": torch.tensor(row), "label": NAMES[label]}
        for row, label in zip(ROWS.features, ROWS.labels, strict=True)
    ]
    torch.save(samples, "x.pt")
    check(import_features("x.pt", out="out"))
    samples[7]["embedding"] = torch.zeros(5)
    torch.save(samples, "x.pt")
    with pytest.raises(
        InputError, match=r"x\.pt: the list: embedding in row 7 is no tensor of shape \(6,\) as in row 0"
    ):
        import_features("x.pt", out="out2")
    samples[3] = {"label": "ant"}
    torch.save(samples, "x.pt")
    with pytest.raises(
        InputError, match=r"x\.pt: the list: keys \['label'\] in row 3, expected \['embedding', 'label'\]"
    ):
        import_features("x.pt", out="out2")


@pytest.mark.parametrize("key", ["classes", "class_names", "label_names"])
def test_class_names_beside_the_labels(key):
    np.savez("x.npz", features=ROWS.features, labels=ROWS.labels, **{key: NAMES})
    torch.save({"train": {"x": torch.tensor(ROWS.features), "y": torch.tensor(ROWS.labels)}, key: NAMES}, "x.pt")
    save_file({"x": ROWS.features, "y": ROWS.labels}, "x.safetensors", metadata={key: json.dumps(NAMES)})
    for path in ("x.npz", "x.pt", "x.safetensors"):
        check(import_features(path, out="out", overwrite=True))


def test_class_names_that_repeat_or_are_too_few():
    np.savez("x.npz", features=ROWS.features, labels=ROWS.labels, classes=["a", "a", "b", "c", "d"])
    with pytest.raises(InputError, match=r"x\.npz: classes: 5 class names, twice: 'a'"):
        import_features("x.npz", out="out")
    np.savez("x.npz", features=ROWS.features, labels=ROWS.labels, classes=["a", "b"])
    with pytest.raises(InputError, match="labels go from 0 to 4, expected 0 to 1 for 2 class names"):
        import_features("x.npz", out="out")


@pytest.mark.parametrize("place", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_flipped_bit_of_a_torch_file(place):
    """torch does not compare the checksums of its archive."""
    torch.save({"x": torch.tensor(ROWS.features), "y": torch.tensor(ROWS.labels)}, "x.pt")
    with open("x.pt", "rb+") as file:  # noqa: PTH123
        content = bytearray(file.read())
        content[int(place * len(content))] ^= 4
        file.seek(0)
        file.write(content)
    with pytest.raises(InputError, match=r"x\.pt: damaged"):
        import_features("x.pt", out="out")
