import pickle
import sys
from dataclasses import replace

import pytest
import timm
import torch
import torchvision
from PIL import Image
from safetensors.torch import save_file
from sklearn.datasets import load_sample_image
from timm.data import ImageNetInfo, create_transform, resolve_model_data_config

from headsmith.core.errors import InputError
from headsmith.models import Normalize, backbone_from_record, load_backbone
from headsmith.models.backbone_sources import _cut_last_layer


@pytest.fixture
def weights(tmp_path):
    """A function: the name of a timm model to a checkpoint of it with random weights, and the model."""

    def make(name="test_resnet"):
        torch.manual_seed(0)
        network = timm.create_model(name).eval()
        path = tmp_path / f"{name}.pth"
        torch.save(network.state_dict(), path)
        return path, network

    return make


@pytest.fixture(scope="module")
def lite0():
    return load_backbone("lite0")


@pytest.mark.parametrize(("photo", "name"), [("china.jpg", "monastery"), ("flower.jpg", "daisy")])
def test_lite0_names_real_photographs(lite0, photo, name):
    image = Image.fromarray(load_sample_image(photo))
    pixels = torch.from_numpy(lite0.preprocessing(image)).permute(2, 0, 1)[None]
    images = Normalize(lite0.preprocessing)(pixels)
    with torch.inference_mode():
        logits = lite0.network.classifier(lite0(images))
        reference = lite0.network(create_transform(**resolve_model_data_config(lite0.network))(image)[None])
    torch.testing.assert_close(logits, reference, atol=1e-4, rtol=0)
    info = ImageNetInfo()
    best = [info.index_to_description(int(index)) for index in logits.topk(5).indices[0]]
    assert any(name in label for label in best), best


@pytest.mark.parametrize("name", ["test_resnet", "test_vit", "test_efficientnet"])
def test_timm_features_are_the_inputs_of_the_classifier(weights, name):
    path, network = weights(name)
    backbone = load_backbone(f"timm:{name}", checkpoint=path)
    images = torch.randn(2, 3, *backbone.preprocessing.crop_size)
    with torch.inference_mode():
        logits = network.get_classifier()(backbone(images))
        torch.testing.assert_close(logits, network(images), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("name", "classifier"), [("resnet18", "fc"), ("mobilenet_v3_small", "classifier.3")])
def test_torchvision_features_are_the_inputs_of_the_classifier(tmp_path, name, classifier):
    torch.manual_seed(0)
    network = torchvision.models.get_model(name, weights=None).eval()
    torch.save(network.state_dict(), tmp_path / "w.pth")
    backbone = load_backbone(f"torchvision:{name}", checkpoint=tmp_path / "w.pth", image_size=64)
    images = torch.randn(2, 3, 64, 64)
    with torch.inference_mode():
        logits = network.get_submodule(classifier)(backbone(images))
        torch.testing.assert_close(logits, network(images), atol=1e-5, rtol=0)
    assert backbone.preprocessing.crop_size == (64, 64)


def test_two_builds_are_the_same_and_another_checkpoint_is_refused(weights):
    path, network = weights()
    record = load_backbone("timm:test_resnet", checkpoint=path, image_size=64).record()
    assert backbone_from_record(record).record() == record
    network.get_parameter("fc.bias").data += 1
    torch.save(network.state_dict(), path)
    with pytest.raises(InputError, match="weights .* the features were made with"):
        backbone_from_record(record)


def test_another_answer_to_the_probe_is_refused(weights):
    record = load_backbone("timm:test_resnet", checkpoint=weights()[0], image_size=64).record()
    record = replace(record, probe=(record.probe[0] + 0.01, *record.probe[1:]))
    with pytest.raises(InputError, match=r"features of a test image differ by 0\.01"):
        backbone_from_record(record)


def test_it_stays_frozen(weights):
    backbone = load_backbone("timm:test_resnet", checkpoint=weights()[0], image_size=64)
    backbone.train()
    assert not any(module.training for module in backbone.modules())
    assert not any(parameter.requires_grad for parameter in backbone.parameters())


def test_safetensors_and_nested_checkpoints(weights, tmp_path):
    path, network = weights()
    plain = load_backbone("timm:test_resnet", checkpoint=path, image_size=64)
    torch.save({"state_dict": network.state_dict(), "epoch": 3}, tmp_path / "nested.pth")
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    for other in ("nested.pth", "w.safetensors"):
        backbone = load_backbone("timm:test_resnet", checkpoint=tmp_path / other, image_size=64)
        assert backbone.weights_sha256 == plain.weights_sha256


class Marker:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_a_pickled_object_is_refused_and_does_not_run(tmp_path):
    marker = tmp_path / "marker"
    with (tmp_path / "evil.pth").open("wb") as file:
        pickle.dump({"weight": Marker(str(marker))}, file, protocol=2)
    torch.save({"weight": Marker(str(marker))}, tmp_path / "evil2.pth")
    for name in ("evil.pth", "evil2.pth"):
        with pytest.raises(InputError, match=rf"{name}: .*pickled objects"):
            load_backbone("timm:test_resnet", checkpoint=tmp_path / name)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("lite1", "expected lite0, timm:NAME, torchvision:NAME"),
        ("timm:", "expected lite0, timm:NAME, torchvision:NAME"),
        ("timm:resnet1888", "no such model in timm .* did you mean resnet18"),
        ("torchvision:resnet5", "did you mean resnet50"),
        ("torchvision:resnet18/V7", "no such weights; expected one of IMAGENET1K_V1, DEFAULT"),
    ],
)
def test_unknown_names_answer_with_near_ones(spec, message):
    with pytest.raises(InputError, match=message):
        load_backbone(spec)


def test_checkpoints_that_do_not_fit(weights, tmp_path):
    path, _ = weights("test_vit")
    with pytest.raises(InputError, match="does not fit the backbone .*Missing key"):
        load_backbone("timm:test_resnet", checkpoint=path)
    with pytest.raises(InputError, match="does not fit the backbone .*Missing key"):
        load_backbone("torchvision:resnet18", checkpoint=path)
    with pytest.raises(InputError, match="no such file"):
        load_backbone("timm:test_resnet", checkpoint=tmp_path / "gone.pth")
    (tmp_path / "text.safetensors").write_text("hello")
    with pytest.raises(InputError, match=r"text.safetensors: cannot be read"):
        load_backbone("timm:test_resnet", checkpoint=tmp_path / "text.safetensors")
    (tmp_path / "photo.pth").write_bytes(b"\xff\xd8\xff\xe0 a photograph")
    with pytest.raises(InputError, match=r"photo.pth: damaged or not a torch.save file"):
        load_backbone("timm:test_resnet", checkpoint=tmp_path / "photo.pth")
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(InputError, match="holds list, expected a dictionary of tensors"):
        load_backbone("timm:test_resnet", checkpoint=tmp_path / "list.pth")


@pytest.mark.parametrize("size", [0, -5, 100_000])
def test_image_sizes_that_are_none(weights, size):
    with pytest.raises(InputError, match=f"image_size: {size} found, expected 1 to 4096 pixels"):
        load_backbone("timm:test_resnet", checkpoint=weights()[0], image_size=size)


def test_an_image_size_that_the_backbone_cannot_take(weights):
    with pytest.raises(InputError, match=r"does not take images of 20 x 20 pixels .* choose another `image_size`"):
        load_backbone("timm:test_vit", checkpoint=weights("test_vit")[0], image_size=20)


def test_without_a_network_the_way_out_is_named(monkeypatch):
    monkeypatch.setattr("headsmith.core.hub._why_unreachable", lambda endpoint: "")

    def offline(*args, **kwargs):
        raise OSError("no route to host")

    monkeypatch.setattr("headsmith.models.backbone_sources.timm.create_model", offline)
    monkeypatch.setattr("headsmith.models.backbone_sources.torchvision.models.get_model", offline)
    for spec in ("timm:resnet18", "torchvision:resnet18"):
        with pytest.raises(
            InputError, match=r"pretrained weights could not be loaded \(no route to host\).*`checkpoint`"
        ):
            load_backbone(spec)


@pytest.mark.parametrize("name", ["squeezenet1_0", "squeezenet1_1"])
def test_a_convolution_as_classifier_gives_the_mean_of_its_input(tmp_path, name):
    torch.manual_seed(0)
    network = torchvision.models.get_model(name, weights=None).eval()
    torch.save(network.state_dict(), tmp_path / "w.pth")
    backbone = load_backbone(f"torchvision:{name}", checkpoint=tmp_path / "w.pth", image_size=64)
    images = torch.randn(2, 3, 64, 64)
    with torch.inference_mode():
        torch.testing.assert_close(backbone(images), network.features(images).mean((2, 3)))


@pytest.mark.parametrize("side_heads", [True, False])
def test_googlenet_with_and_without_its_side_heads(tmp_path, side_heads):
    torch.manual_seed(0)
    options = {"transform_input": True, "init_weights": False, "aux_logits": side_heads}
    network = torchvision.models.googlenet(weights=None, **options).eval()
    torch.save(network.state_dict(), tmp_path / "w.pth")
    backbone = load_backbone("torchvision:googlenet", checkpoint=tmp_path / "w.pth", image_size=64)
    images = torch.randn(2, 3, 64, 64)
    with torch.inference_mode():
        torch.testing.assert_close(network.fc(backbone(images)), network(images))


def test_a_network_without_a_linear_classifier_is_refused():
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.ReLU())
    with pytest.raises(InputError, match="last layer .* expected Linear"):
        _cut_last_layer(network, "another")


@pytest.mark.parametrize(
    ("spec", "hint"),
    [("nope", ""), ("tim:resnet50", "; did you mean timm?"), ("timm:", "; did you mean timm?"), ("", "")],
)
def test_a_spec_of_no_library_is_refused_before_one_is_imported(spec, hint, monkeypatch):
    monkeypatch.setitem(sys.modules, "headsmith.models.backbone_sources", None)
    with pytest.raises(InputError) as excinfo:
        load_backbone(spec)
    assert str(excinfo.value).endswith(
        f"expected lite0, timm:NAME, torchvision:NAME[/WEIGHTS], onnx:FILE, cifar:resnet18 or a fine-tuned run{hint}"
    )


@pytest.mark.parametrize("name", ["test_resnet", "test_vit", "deit_tiny_distilled_patch16_224"])
def test_a_classifier_that_is_cut_off_does_not_count(weights, name):
    """timm's own way to have none; the last of these has two."""
    path, network = weights(name)
    without = sum(weight.numel() for weight in timm.create_model(name, num_classes=0).parameters())
    assert load_backbone(f"timm:{name}", checkpoint=path).parameter_count == without
    whole = load_backbone(f"timm:{name}", checkpoint=path, whole=True).parameter_count
    assert whole == sum(weight.numel() for weight in network.parameters()) > without


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_network_of_nan_is_refused(weights, value):
    path, network = weights()
    network.conv1[0].weight.data[0] = value
    torch.save(network.state_dict(), path)
    with pytest.raises(InputError, match=r"timm:test_resnet: the backbone gives NaN or infinite features for"):
        load_backbone("timm:test_resnet", checkpoint=path)
