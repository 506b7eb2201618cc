"""A benchmark of five backbones that need no network, and one that must fail, made once for all tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import pytest
import timm
import torch
import yaml

from headsmith.evaluate import evaluation
from headsmith.evaluate.benchmark import Benchmark, benchmark, benchmarking
from headsmith.evaluate.measuring import timing_in_turns

RECIPE = {
    "resize_mode": "shortest",
    "resize_size": 16,
    "crop_size": 16,
    "interpolation": "bilinear",
    "channel_order": "rgb",
    "scale": 1 / 255,
    "mean": [0.5, 0.5, 0.5],
    "std": [0.5, 0.5, 0.5],
}
NET = """(float[N, 3, 16, 16] images) => (float[N, 5] scores) {
    maps = Conv<strides = [4, 4]>(images, filters)
    bent = Relu(maps)
    means = GlobalAveragePool(bent)
    features = Flatten(means)
    scores = Gemm(features, weights, biases)
}"""
GRID = {"loss": "softmax", "learning_rate": [0.003, 0.1], "epochs": 12}
RESNET = "test_resnet"
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
        files = [
            self.onnx("quiet"),
            self.onnx("loud", scale=1e7),
            self.onnx("other", seed=1),
            self.onnx("more", seed=2),
        ]
        return [*files, self.local(RESNET), self.lost()]

    def onnx(self, name: str, *, seed: int = 0, scale: float = 1.0) -> dict[str, object]:
        """A classifier of 8 features and 5 classes with seeded weights; its features are as large as ``scale``."""
        model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> net {NET}')
        random = np.random.default_rng(seed)
        for key, shape in (("filters", (8, 3, 4, 4)), ("weights", (8, 5)), ("biases", (5,))):
            values = random.normal(size=shape).astype(np.float32) * (scale if key == "filters" else 1)
            model.graph.initializer.append(onnx.numpy_helper.from_array(values.astype(np.float32), key))
        onnx.save_model(model, self.folder / f"{name}.onnx")
        return {"backbone": f"onnx:{name}.onnx", "preprocessing": "recipe.yaml", "name": name}

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
    patch.setattr(benchmarking, "with_processes", lambda work: work)  # each costs the import of torch
    patch.setattr(timing_in_turns, "ROUNDS", 1)
    patch.setattr(timing_in_turns, "LEAST", 1)
    patch.setattr(evaluation, "CHEAP", timing_in_turns.Effort(0, 1, ()))


@pytest.fixture(scope="session")
def shortened() -> Callable[[pytest.MonkeyPatch], None]:
    """What shortens the timing, for other fixtures of the session."""
    return shorten


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
