"""What torch warns of while it reads a file does not reach whoever asked for it."""

import warnings

import numpy as np
import pytest
import torch

from headsmith import import_features
from headsmith.core.errors import InputError


def written(kind, path):
    features = torch.from_numpy(np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32))
    if kind == "script":
        torch.jit.trace(torch.nn.Linear(3, 2), features).save(path)
        return
    made = {
        "quantised": lambda: torch.quantize_per_tensor(features, 0.1, 0, torch.quint8),
        "sparse": features.to_sparse,
        "csr": features.to_sparse_csr,
    }[kind]()
    torch.save({"features": made, "labels": torch.arange(60) % 3}, path)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("script", "is a TorchScript module, expected a dictionary of tensors"),
        ("quantised", "features quint8 .* is not of real numbers, .*; take its .dequantize"),
        ("sparse", "features: a sparse tensor found, expected a dense one"),
        ("csr", "features: a sparse tensor found, expected a dense one"),
    ],
)
def test_one_line_and_no_warning(kind, message, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written(kind, tmp_path / "x.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match=message):
            import_features(tmp_path / "x.pt", out=tmp_path / "set")
