"""Networks for pictures of 32 x 32, as the papers on CIFAR train them; nobody published weights."""

from torch import nn

from ...core.errors import InputError, near
from ..preprocessing import Preprocessing

NAMES = ("resnet18",)
EDGE = 32
# Of CIFAR-100's training pictures.
MEAN, STD = (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)


def cifar_network(name: str) -> nn.Module:
    """A network by its name, with random weights from torch's generator and 1,000 outputs.

    ``resnet18``: the ResNet-18 of Petersen et al. (ICML 2022) for CIFAR-100: torchvision's, with a first convolution of
    3 x 3 and stride 1; the maximum over 3 x 3 with stride 2 behind it stays.

    Raises:
        InputError: No such network.
    """
    if name not in NAMES:
        raise InputError(f"--backbone cifar:{name}: expected cifar:{' or cifar:'.join(NAMES)}{near(name, NAMES)}")
    from torchvision.models import resnet18

    network: nn.Module = resnet18()
    first = nn.Conv2d(3, 64, 3, stride=1, padding=1, bias=False)
    network.set_submodule("conv1", first)
    nn.init.kaiming_normal_(first.weight, mode="fan_out", nonlinearity="relu")
    return network


def cifar_recipe(image_size: int | None) -> Preprocessing:
    """The preprocessing of CIFAR-100: pictures as they are, or of another edge in pixels."""
    size = (image_size or EDGE,) * 2
    return Preprocessing("shortest", size, size, "bilinear", MEAN, STD)
