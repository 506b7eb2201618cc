"""What a file holds beside features and labels, and cannot be read, is not read; needed, it is told."""

import numpy as np
import pytest
import torch

from headsmith.core.errors import InputError
from headsmith.trainer import import_features

from .planted import check_aligned, planted

ROWS = planted(60)
FEATURES, LABELS = torch.from_numpy(ROWS.features), torch.from_numpy(ROWS.labels)
HISTORY = [{"epoch": 1, "loss": 0.5}, {"epoch": 2}]
UNRELATED = {
    "a mixed list": ({"a": [1, "b"]}, ["meta/a"]),
    "a mixed list of all rows": ({"notes": [1, "b"] * 30}, ["meta/notes"]),
    "a list with a gap": ({"notes": ["a", None] * 30}, ["meta/notes"]),
    "a sparse matrix": ({"graph": torch.eye(60).to_sparse()}, ["meta/graph"]),
    "a nested tensor": (
        {"words": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)},
        ["meta/words"],
    ),
    "a tensor without values": ({"weights": torch.zeros(10**9, 100, device="meta")}, ["meta/weights"]),
    "a history": ({"history": HISTORY}, ["meta/history/epoch", "meta/history/loss"]),
    "shapes of layers": ({"shapes": [{"w": torch.ones(2)}, {"w": torch.ones(3)}]}, ["meta/shapes/w"]),
    "milestones": ({"milestones": [30, 60]}, ["meta/milestones"]),
}
pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("meta", "names"), UNRELATED.values(), ids=UNRELATED)
@pytest.mark.parametrize(("said", "named"), [("labels", {}), ("kind", {"label_column": "kind"})])
def test_other_parts_of_a_torch_file_are_listed(meta, names, said, named):
    torch.save({"features": FEATURES, said: LABELS, "meta": meta, "epoch": 3}, "f.pt")
    found = import_features("f.pt", out="set", **named)
    assert check_aligned(found) == set(range(60))
    assert found.manifest.imported.not_read == names


def test_samples_some_of_which_have_more():
    samples = [
        {"x": row, "y": label, "boxes": torch.ones(1 + number % 3, 4), **({"caption": "a"} if number % 2 else {})}
        for number, (row, label) in enumerate(zip(FEATURES, LABELS, strict=True))
    ]
    torch.save(samples, "f.pt")
    found = import_features("f.pt", out="set")
    assert check_aligned(found) == set(range(60))
    assert found.manifest.imported.not_read == ["boxes", "caption"]


@pytest.mark.parametrize(
    "other", [{"args": {"lr": 0.1}}, np.array([[1], [1, 2]], object)], ids=["a dictionary", "lists"]
)
def test_objects_beside_the_arrays_of_an_archive(other):
    np.savez("f.npz", x=ROWS.features, y=ROWS.labels, other=other)
    found = import_features("f.npz", out="set")
    assert check_aligned(found) == set(range(60))
    assert found.manifest.imported.not_read == ["other"]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"labels": [1, "b"] * 30}, "f.pt: labels: 1 in row 0 and 'b' in row 1, expected numbers or text, not both"),
        ({"kind": [1, "b"] * 30}, "f.pt: kind: 1 in row 0 and 'b' in row 1"),
        ({"kind": [1, "b"] * 30, "row": torch.arange(60)}, r"several .* labels: kind object \(60\), row int64"),
        ({"kind": LABELS[:, None].to_sparse()}, "f.pt: kind: a sparse tensor found"),
        ({"y": LABELS, "id": ["a", None] * 30}, "f.pt: id: None in row 1, expected a value in every row"),
        ({"y": LABELS, "split": ["train", None] * 30}, "f.pt: split: None in row 1"),
        ({"samples": [{"kind": 1}, {}] * 30}, r"f.pt: samples: keys \[\] in row 1, expected \['kind'\] as in row 0"),
        ({"samples": [{"kind": 1}, {"kind": LABELS}] * 30}, "samples: kind in row 1 is a tensor, other than in row 0"),
    ],
)
def test_what_is_needed_and_cannot_be_read_is_told(part, said):
    torch.save({"x": FEATURES, **part}, "f.pt")
    with pytest.raises(InputError, match=said):
        import_features("f.pt", out="set")
    if "kind" in part:
        with pytest.raises(InputError, match="f.pt: kind: "):
            import_features("f.pt", out="set", label_column="kind")
