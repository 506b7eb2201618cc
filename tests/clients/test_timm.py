"""timm and transformers open the bundle's folder as any other of timm's, and see the images through their own eyes."""

from pathlib import Path

import pytest
import timm
import timm.data
import torch

from headsmith import Bundle, export_classifier, predict, push
from headsmith.models.images import open_image


@pytest.fixture(scope="module")
def bundle(tiny_run, tmp_path_factory):
    return export_classifier(tiny_run, out=tmp_path_factory.mktemp("timm") / "bundle", formats=("onnx", "timm"))


@pytest.fixture(scope="module")
def predictions(tiny_run, bundle):
    images = sorted(Path(tiny_run.record.features.source.source).glob("*/00*.png"))
    return predict(bundle, images)


def test_timm(bundle: Bundle, predictions):
    network = timm.create_model(f"local-dir:{bundle.path}", pretrained=True).eval()
    transform = timm.data.create_transform(**timm.data.resolve_data_config({}, model=network))
    labels = network.pretrained_cfg["label_names"]
    for expected in predictions:
        with torch.inference_mode():
            scores = network(transform(open_image(expected.path, expected.path))[None]).softmax(-1)[0]
        best = scores.topk(5)
        assert [labels[index] for index in best.indices] == list(expected.labels)
        assert best.values.tolist() == pytest.approx(expected.scores, abs=1e-3)


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of the hub's client to its own
def test_timm_from_the_hub(bundle: Bundle, hub):
    push(bundle, "me/animals")
    found = timm.create_model("hf-hub:me/animals", pretrained=True).state_dict()
    expected = timm.create_model(f"local-dir:{bundle.path}", pretrained=True).state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in found.items())


def test_transformers(bundle: Bundle, predictions):
    from transformers import pipeline

    classify = pipeline("image-classification", model=str(bundle.path), device="cpu")
    for expected in predictions:
        found = classify(expected.path)
        assert [entry["label"] for entry in found] == list(expected.labels)
        assert [entry["score"] for entry in found] == pytest.approx(expected.scores, abs=1e-3)
