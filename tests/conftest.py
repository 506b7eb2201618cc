import gc
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import pytest
import timm
import torch
import yaml
from filelock import FileLock
from hub_server import Hub, serve
from huggingface_hub import constants
from PIL import Image
from torch._export import utils as export_utils
from torch.onnx._internal.exporter._registration import ONNXRegistry

from headsmith.demo.demo import run_demo
from headsmith.export import Bundle, export_classifier
from headsmith.show import console
from headsmith.trainer import Run, extract, train

if hasattr(signal, "SIGHUP"):  # a suite under nohup ignores it, and so would the commands under test
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
console.width = None  # workers begin with COLUMNS=80, which would hold whatever a test sets


class TinyBackbone(NamedTuple):
    backbone: str
    checkpoint: Path
    image_size: int


def pytest_collection_finish() -> None:
    """What is imported stays: a full collection, of which each evaluation does two, need not look through it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test in an empty folder, so that what a command writes by default does not litter the checkout."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture(scope="session", autouse=True)
def registry_of_operators() -> Iterator[None]:
    """One table of torch's ONNX operators for all exports; each would compile the same 500 functions for itself.

    And each looks up all composite operators some 60 times; they are the same as long as there are as many.
    """
    materialize = export_utils._materialize_cpp_cia_ops
    look_up = cache(lambda number: materialize())
    composite = torch._C._dispatch_get_registrations_for_dispatch_key
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(cache(ONNXRegistry.from_torchlib)))
        patch.setattr(
            export_utils,
            "_materialize_cpp_cia_ops",
            lambda: look_up(len(composite("CompositeImplicitAutograd"))),
        )
        yield


@pytest.fixture(scope="session")
def tiny_backbone(tmp_path_factory: pytest.TempPathFactory) -> TinyBackbone:
    """Keyword arguments (``_asdict()``) for a small timm network with random weights: D = 96."""
    path = tmp_path_factory.mktemp("backbone") / "tiny.pth"
    torch.manual_seed(0)
    torch.save(timm.create_model("test_resnet").state_dict(), path)
    return TinyBackbone("timm:test_resnet", path, 32)


@pytest.fixture(scope="session")
def image_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function: ``{"cat": 4, "dog": 3}``, or that for each split, to a new folder of PNG images, a colour a class."""

    def make(layout: Mapping[str, int | Mapping[str, int]], size: int = 40) -> Path:
        root = tmp_path_factory.mktemp("images")
        for name, images in layout.items():
            classes = {name: images} if isinstance(images, int) else {f"{name}/{cls}": n for cls, n in images.items()}
            for folder, count in classes.items():
                draw_class(root / folder, count, size)
        return root

    return make


def draw_class(folder: Path, count: int, size: int) -> None:
    folder.mkdir(parents=True)
    colour = np.random.default_rng([ord(letter) for letter in folder.name]).integers(40, 216, 3)
    for number in range(count):
        noise = np.random.default_rng([number, ord(folder.name[0])]).integers(-40, 40, (size, size, 3))
        Image.fromarray((colour + noise).astype(np.uint8)).save(folder / f"{number:03d}.png")


CLASSES = ("cat", "dog", "emu", "fox", "gnu", "hen")


@pytest.fixture(scope="session")
def tiny_run(
    image_folder: Callable[..., Path], tiny_backbone: TinyBackbone, tmp_path_factory: pytest.TempPathFactory
) -> Run:
    """A linear head trained on 6 classes of 20 images, of which a tenth each is held out for val and test."""
    folder = tmp_path_factory.mktemp("run")
    images = image_folder(dict.fromkeys(CLASSES, 20))
    features = extract(images, out=folder / "features", **tiny_backbone._asdict())
    return train(features, out=folder / "run", epochs=60, learning_rate=0.05, patience=60, device="cpu")


@pytest.fixture(scope="session")
def tiny_bundle(tiny_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The exported `tiny_run`: ONNX and TorchScript, float NCHW. Read only; copy the folder to damage it."""
    return export_classifier(tiny_run, out=tmp_path_factory.mktemp("bundle") / "tiny", formats=("onnx", "torchscript"))


@pytest.fixture(scope="session")
def glyph_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the demo makes of 12 characters: ``glyphs/``, ``bundles/`` and so on, made once for all test processes."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    with FileLock(root / "demo.lock"):
        if not (root / "demo" / "12" / "demo.png").exists():  # written last
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("headsmith.demo.demo.STEPS", 24)
                run_demo(root / "demo", classes=12)
    return root / "demo" / "12"


@pytest.fixture(scope="session")
def onnx_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function: a graph in onnx's own text form, and its weights by name, to a file.

    ``images`` are what the first line declares; weights of a shape are random.
    """

    def make(graph: str, *, opset: int = 13, ir: int = 8, **weights: tuple[int, ...] | np.ndarray) -> Path:
        model = onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]> net {graph}')
        random = np.random.default_rng(0)
        for name, value in weights.items():
            array = random.normal(size=value).astype(np.float32) if isinstance(value, tuple) else value
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        path = tmp_path_factory.mktemp("onnx") / "zoo.onnx"
        onnx.save_model(model, path)
        return path

    return make


@pytest.fixture(scope="session")
def recipe_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function: changes to a Caffe-like recipe for images of 8 x 8 pixels, to a YAML file."""

    def make(**changes: object) -> Path:
        recipe = {"resize_mode": "shortest", "resize_size": 9, "crop_size": 8, "interpolation": "bilinear", "scale": 1}
        recipe |= {"channel_order": "bgr", "mean": [103.939, 116.779, 123.68], "std": 58.0} | changes
        path = tmp_path_factory.mktemp("recipe") / "recipe.yaml"
        path.write_text(yaml.safe_dump({key: value for key, value in recipe.items() if value is not None}))
        return path

    return make


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """An empty hub, for a user who is logged in and has downloaded nothing; large files go there by Git LFS."""
    with serve() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.address)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{hub.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", "hf_nobody")
        yield hub


@pytest.fixture(scope="session")
def need() -> Callable[[object, str], None]:
    """A function: skip by name what is not installed; in continuous integration nothing may be missing."""

    def check(found: object, name: str) -> None:
        if not found:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{name} is not installed; see CONTRIBUTING.md")

    return check
