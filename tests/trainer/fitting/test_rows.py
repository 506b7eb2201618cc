"""Rows reach the device as they were asked for."""

import pytest
import torch

from headsmith.trainer.fitting import device_rows as placement
from headsmith.trainer.fitting.device_rows import place
from headsmith.trainer.fitting.row_order import row_order, windows

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("memory", "free"), [(None, None), (0, 2**40), (0, 0)])
def test_features_and_labels_stay_together(device, memory, free, monkeypatch):
    monkeypatch.setattr(placement, "free_memory", lambda: free)
    labels = torch.arange(50)
    features = labels[:, None].expand(50, 4).half().contiguous()
    rows = place(features, labels, torch.device(device), memory)
    seen = []
    for window, found, targets in rows.windows(windows(row_order(labels, 3, 1, balanced=False), 8, 2, 0, 0, 1)):
        assert torch.equal(found[:, 0].long(), targets)
        assert torch.equal(targets.cpu(), window.rows)
        seen += targets.tolist()
    assert sorted(seen) == labels.tolist()
    assert torch.cat([targets for _, targets in rows.blocks(7, 1, 3)]).tolist() == labels[1::3].tolist()


def test_a_cpu_leaves_features_where_they_are():
    features = torch.randn(5, 2)
    rows = place(features, torch.zeros(5, dtype=torch.int64), torch.device("cpu"), None)
    assert rows.features.data_ptr() == features.data_ptr()
