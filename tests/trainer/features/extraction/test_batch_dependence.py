"""A network whose features depend on the size of the batch is found at the sizes that an extraction runs."""

import numpy as np
import pytest
import torch

from headsmith.core.errors import InputError
from headsmith.models.backbone import load_backbone
from headsmith.trainer import extract
from headsmith.trainer.features.extraction.embedding import Embedder

GRAPH = """(float[N, 3, 8, 8] images) => (float[N, 2] scores) {
    pooled = GlobalAveragePool(images)
    flat = Flatten(pooled)
    shape = Shape(flat)
    axis = Constant<value_ints = [0]>()
    count = Gather(shape, axis)
    size = Constant<value_ints = [SIZE]>()
    this = Equal(count, size)
    added = Constant<value_float = 5.0>()
    none = Constant<value_float = 0.0>()
    more = Where(this, added, none)
    features = Add(flat, more)
    scores = MatMul(features, weight)
}"""


@pytest.mark.parametrize(("size", "batch"), [(6, 6), (4, 8), (6, 64)])
def test_a_network_that_is_off_at_a_size_that_is_run(onnx_file, recipe_file, image_folder, tmp_path, size, batch):
    """Twelve images are trained on: in batches of eight these are eight and four."""
    images = image_folder({split: {"cat": count, "dog": count} for split, count in (("train", 7), ("val", 3))})
    graph = onnx_file(GRAPH.replace("SIZE", str(size)), weight=(3, 2))
    with pytest.raises(InputError, match=rf"other features in a batch of {size} than alone .*another `batch_size`"):
        extract(images, out=tmp_path / "set", backbone=f"onnx:{graph}", preprocessing=recipe_file(), batch_size=batch)
    assert not (tmp_path / "set").exists()


def test_a_size_that_is_not_run_is_no_matter(onnx_file, recipe_file, image_folder, tmp_path):
    graph = onnx_file(GRAPH.replace("SIZE", "11"), weight=(3, 2))
    images = image_folder({"cat": 9, "dog": 9})
    extract(images, out=tmp_path / "set", backbone=f"onnx:{graph}", preprocessing=recipe_file(), batch_size=4)


@pytest.mark.parametrize("batch", [1, 4])
def test_a_network_that_draws_random_numbers(tiny_backbone, batch):
    """Its features are others each time, whatever lies beside an image."""
    name, checkpoint, size = tiny_backbone
    embedder = Embedder(
        load_backbone(name, checkpoint=checkpoint, image_size=size), torch.device("cpu"), torch.float32, amp=False
    )
    pixels = np.random.default_rng(0).integers(0, 256, (batch, size, size, 3), dtype=np.uint8)
    ids = [f"{number}.png" for number in range(batch)]
    embedder(pixels, ids)
    embedder.network.append(torch.nn.Dropout(0.5))
    embedder._compared.clear()
    torch.manual_seed(0)
    with pytest.raises(InputError, match="gives the same image other features each time .*random numbers"):
        embedder(pixels, ids)
