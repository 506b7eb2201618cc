"""A backbone's own classifier, and the names of its outputs."""

import pytest
import timm
import torch
import torchvision
from PIL import Image
from sklearn.datasets import load_sample_image
from torch import nn

from headsmith.core.errors import InputError
from headsmith.models import Linear, Normalize, backbone_classifier, load_backbone
from headsmith.models.class_names import find_classes, imagenet_names, torchvision_names


@pytest.mark.parametrize(("photo", "name"), [("china.jpg", "monastery"), ("flower.jpg", "daisy")])
def test_a_head_from_lite0_names_real_photographs(photo, name):
    backbone = load_backbone("lite0")
    own = backbone_classifier(backbone)
    head = Linear(backbone.feature_dim, len(own.bias))
    head.start_from(own.weight, own.bias)
    pixels = torch.from_numpy(backbone.preprocessing(Image.fromarray(load_sample_image(photo))))
    with torch.inference_mode():
        logits = head(backbone(Normalize(backbone.preprocessing)(pixels.permute(2, 0, 1)[None])))
    best = [own.names[2][index] for index in logits.topk(5).indices[0].tolist()]
    assert name in best


@pytest.mark.parametrize("name", ["test_resnet", "test_vit", "test_efficientnet"])
def test_timm_classifiers_give_the_logits_of_the_network(name, tmp_path):
    torch.manual_seed(0)
    network = timm.create_model(name).eval()
    torch.save(network.state_dict(), tmp_path / "w.pth")
    backbone = load_backbone(f"timm:{name}", checkpoint=tmp_path / "w.pth")
    own = backbone_classifier(backbone)
    images = torch.randn(2, 3, *backbone.preprocessing.crop_size)
    with torch.inference_mode():
        logits = nn.functional.linear(backbone(images), own.weight, own.bias)
        torch.testing.assert_close(logits, network(images), atol=1e-5, rtol=0)
    assert own.names[0][:2] == ("n01440764", "n01443537")


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small"])
def test_torchvision_classifiers_give_the_logits_of_the_network(name, tmp_path):
    torch.manual_seed(0)
    network = torchvision.models.get_model(name, weights=None).eval()
    torch.save(network.state_dict(), tmp_path / "w.pth")
    backbone = load_backbone(f"torchvision:{name}", checkpoint=tmp_path / "w.pth", image_size=64)
    own, images = backbone_classifier(backbone), torch.randn(2, 3, 64, 64)
    with torch.inference_mode():
        logits = nn.functional.linear(backbone(images), own.weight, own.bias)
        torch.testing.assert_close(logits, network(images), atol=1e-5, rtol=0)
    assert [names[388] for names in own.names] == [
        "giant panda",
        "n02510455",
        imagenet_names("imagenet-1k")[1][388],
        "giant panda",
    ]


def test_a_classifier_of_two_layers_is_refused(tmp_path, monkeypatch):
    torch.manual_seed(0)
    torch.save(timm.create_model("test_resnet").state_dict(), tmp_path / "w.pth")
    backbone = load_backbone("timm:test_resnet", checkpoint=tmp_path / "w.pth", image_size=64)
    forward_head = backbone.network.forward_head
    monkeypatch.setattr(backbone.network, "forward_head", lambda x, pre_logits=False: 2 * forward_head(x, pre_logits))
    with pytest.raises(InputError, match="its own classifier does more than one product"):
        backbone_classifier(backbone)


def test_a_network_without_classes_is_refused(tmp_path, monkeypatch):
    torch.manual_seed(0)
    torch.save(timm.create_model("test_resnet").state_dict(), tmp_path / "w.pth")
    monkeypatch.setattr(timm.models.ResNet, "get_classifier", lambda self: nn.Identity())
    backbone = load_backbone("timm:test_resnet", checkpoint=tmp_path / "w.pth", image_size=64)
    with pytest.raises(InputError, match="its own classifier is a Identity, expected one Linear layer"):
        backbone_classifier(backbone)


def test_classes_are_found_in_whichever_way_they_are_named():
    known = torchvision_names(torchvision.models.ResNet18_Weights.DEFAULT.meta["categories"])
    assert find_classes(["n01443537", "n01440764"], known) == [1, 0]
    assert find_classes(["goldfish", "tench", "unicorn"], known) == [1, 0, None]
    assert find_classes(["goldfish, Carassius auratus"], known) == [1]
    assert find_classes(["crane", "crane bird"], known) == [517, 134]


def test_a_name_that_stands_twice_finds_nothing():
    """ImageNet has two cranes: the bird is output 134, the machine 517."""
    names = imagenet_names("imagenet-1k")
    assert (names[2][134], names[2][517]) == ("crane", "crane")
    assert find_classes(["crane", "tench"], names) == [None, 0]


def test_nobody_knows_the_names_of_other_outputs():
    assert imagenet_names(None) is None
