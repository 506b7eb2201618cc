"""A benchmark of five backbones that need no network, and one that must fail, made once for all tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import onnx
import pytest
import timm
import torch
import yaml

from headsmith.evaluate import evaluation
from headsmith.evaluate.benchmark import Benchmark, benchmark
from headsmith.evaluate.measuring import timing

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
RECIPE = {
    "resize_mode": "shortest",
    "resize_size": 224,
    "crop_size": 224,
    "interpolation": "bilinear",
    "channel_order": "rgb",
    "scale": 1 / 255,
    "mean": [0.5, 0.5, 0.5],
    "std": [0.5, 0.5, 0.5],
}
GRID = {"loss": "softmax", "learning_rate": [0.003, 0.1], "epochs": 12}
RESNET, BYOB = "test_resnet", "test_byobnet"
LOST = "lost"


class Zoo(NamedTuple):
    """Where the backbones lie."""

    folder: Path
    images: Path

    def config(self, name: str, **values: object) -> Path:
        """A YAML file beside the weights."""
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(values))
        return path

    def rows(self) -> list[dict[str, object]]:
        """The five, and one whose weights are of another network."""
        light = [
            {"backbone": f"onnx:{LIGHT / name}.onnx", "preprocessing": "recipe.yaml"}
            for name in ("light_squeezenet", "light_shufflenet")
        ]
        return [
            {"backbone": "lite0", "image_size": 32},
            *light,
            *(self.local(name) for name in (RESNET, BYOB)),
            self.lost(),
        ]

    def local(self, name: str) -> dict[str, object]:
        """An architecture of timm with seeded weights."""
        path = self.folder / f"{name}.pth"
        if not path.exists():
            torch.manual_seed(0)
            torch.save(timm.create_model(name).state_dict(), path)
        return {"backbone": f"timm:{name}", "checkpoint": path.name, "name": name, "image_size": 32}

    def lost(self) -> dict[str, object]:
        return {"backbone": "timm:resnet18", "checkpoint": f"{RESNET}.pth", "name": LOST}


@pytest.fixture(autouse=True)
def short_timing() -> Iterator[None]:
    """Others measure speed."""
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        yield


def shorten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(timing, "ROUNDS", 1)
    patch.setattr(timing, "LEAST", 1)
    patch.setattr(evaluation, "CHEAP", timing.Effort(0, 1, ()))


@pytest.fixture(scope="session")
def zoo(image_folder: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    folder = tmp_path_factory.mktemp("zoo")
    (folder / "recipe.yaml").write_text(yaml.safe_dump(RECIPE))
    (folder / "grid.yaml").write_text(yaml.safe_dump(GRID))
    return Zoo(folder, image_folder(dict.fromkeys(("cat", "dog", "emu"), 20)))


@pytest.fixture(scope="session")
def five(zoo: Zoo, tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """All six rows; read only."""
    config = zoo.config("five", backbones=zoo.rows(), sweep="grid.yaml", device="cpu")
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        return benchmark(zoo.images, config=config, out=tmp_path_factory.mktemp("benchmark") / "five", keep="all")
