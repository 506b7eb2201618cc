import pytest
import torch

from headsmith.trainer import TrainConfig

CLASSES, DIMS = 6, 5


def split(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (rows,), generator=generator)
    return torch.eye(CLASSES)[labels][:, :DIMS] + torch.randn(rows, DIMS, generator=generator), labels


@pytest.fixture(scope="session")
def rows():
    return {"train": split(150, 0), "val": split(60, 1), "test": split(60, 2)}


@pytest.fixture
def config():
    return TrainConfig(
        epochs=3, batch_size=32, learning_rate=0.05, patience=3, start="zeros", top1_mode="sm", device="cpu"
    )
