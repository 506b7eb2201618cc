"""Which parameters learn."""

import pytest
import torchvision

from headsmith.core.errors import InputError
from headsmith.models.backbone import load_backbone
from headsmith.models.heads import Linear
from headsmith.trainer.finetuning.network import Network
from headsmith.trainer.finetuning.settings import FinetuneConfig


def learning(spec: str, unfreeze: str, **options) -> set[str]:
    """The modules of a network with parameters that learn, two levels deep."""
    backbone = load_backbone(spec, from_scratch=True, **options)
    config = FinetuneConfig(unfreeze=unfreeze, batch_norm="frozen")
    network = Network(backbone, Linear(backbone.feature_dim, 3), config)
    assert all(parameter.requires_grad for parameter in network.head.parameters())
    named = network.backbone.named_parameters()
    return {".".join(name.split(".")[:2]) for name, one in named if one.requires_grad}


@pytest.mark.parametrize(
    ("spec", "unfreeze", "expected"),
    [
        ("timm:test_resnet", "last:1", {"layer4.0"}),
        ("timm:test_resnet", "last:2", {"layer3.0", "layer4.0"}),
        ("timm:test_vit", "last:1", {"blocks.5", "norm.weight", "norm.bias"}),
        ("timm:test_convnext", "last:1", {"stages.3", "head.norm"}),
        ("cifar:resnet18", "last:1", {"layer4.1"}),
        ("cifar:resnet18", "last:3", {"layer3.1", "layer4.0", "layer4.1"}),
        ("torchvision:squeezenet1_1", "last:1", {"features.12"}),
        ("timm:test_resnet", "none", set()),
    ],
)
def test_the_last_blocks_learn(spec, unfreeze, expected):
    assert learning(spec, unfreeze) == expected


def test_norms_alone_learn():
    backbone = load_backbone("timm:test_vit", from_scratch=True)
    network = Network(backbone, Linear(backbone.feature_dim, 3), FinetuneConfig(unfreeze="norms", batch_norm="frozen"))
    found = {name for name, one in network.backbone.named_parameters() if one.requires_grad}
    assert found == {name for name, _ in network.backbone.named_parameters() if ".norm" in name or name[:4] == "norm"}


def test_more_blocks_than_there_are():
    with pytest.raises(InputError, match=r"unfreeze: last:9 found, but timm:test_resnet has 5 blocks; expected fewer"):
        learning("timm:test_resnet", "last:9")


def test_what_does_not_learn_stays_as_it_is_deployed():
    backbone = load_backbone("timm:test_resnet", from_scratch=True)
    network = Network(backbone, Linear(96, 3), FinetuneConfig(unfreeze="last:1", batch_norm="trained")).train()
    modes = {name: one.training for name, one in network.backbone.named_modules() if "bn" in name}
    assert all(trains == name.startswith("layer4") for name, trains in modes.items())
    assert any(modes.values())
    assert network.depends_on_batch()


def test_the_network_for_cifar_has_the_shapes_of_the_paper():
    """A first convolution of 3 x 3 and stride 1, then the maximum over 3 x 3 with stride 2."""
    network = load_backbone("cifar:resnet18", from_scratch=True).network
    peer = torchvision.models.resnet18()
    assert (network.conv1.kernel_size, network.conv1.stride, network.conv1.padding) == ((3, 3), (1, 1), (1, 1))
    assert network.maxpool.stride == peer.maxpool.stride == 2
    expected, found = (
        {name: value.shape for name, value in one.state_dict().items() if name.split(".")[0] not in ("conv1", "fc")}
        for one in (peer, network)
    )
    assert found == expected
    assert load_backbone("cifar:resnet18", from_scratch=True).preprocessing.crop_size == (32, 32)
