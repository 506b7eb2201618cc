"""The steps of an epoch: pixels to augmented images, logits, losses, gradients and the update."""

from collections.abc import Callable

import torch
from timm.utils.model_ema import ModelEmaV3
from torch import Tensor

from ...core.errors import InputError
from ...models.preprocessing_layers import Normalize
from ..fitting.row_order import epoch_generator, row_order
from ..losses import TopKCrossEntropy
from .augmentation import Augmentation, mixing
from .network import Network
from .optimization import Optimization
from .pictures import Pictures
from .settings import FinetuneConfig

# So many steps until somebody looks whether the loss is finite, which waits for the device.
_LOOK = 50


class Steps:
    """Goes through epochs.

    Args:
        network: What learns, on its device.
        normalize: What comes before it.
        loss: Row by row.
        config: The settings.
        pictures: The training images.
        crop_size: ``(height, width)`` that the network takes.
        num_classes: C.

    Attributes:
        optimization: The optimiser.
        images: In an epoch.

    Raises:
        InputError: Batches of one for batch normalisation that takes their statistics.
    """

    def __init__(
        self,
        network: Network,
        normalize: Normalize,
        loss: TopKCrossEntropy,
        config: FinetuneConfig,
        pictures: Pictures,
        crop_size: tuple[int, int],
        num_classes: int,
    ) -> None:
        self.network, self.normalize, self.loss, self.config, self.pictures = network, normalize, loss, config, pictures
        self._sizes = _batch_sizes(len(pictures), config.batch_size, alone=not network.depends_on_batch())
        self.images = sum(self._sizes)
        self.optimization = Optimization(network, config, len(self._sizes))
        self._augmentation = Augmentation(config, crop_size)
        self._mix = mixing(config, num_classes)

    def run(self, epoch: int, average: ModelEmaV3 | None, advance: Callable[[int], None]) -> float:
        """Go through epoch ``epoch`` (from 1): the same steps from the same weights, whatever came before.

        Args:
            epoch: Its number.
            average: What averages the weights.
            advance: Called with the number of images of each step.

        Returns:
            The mean loss; NaN where it stopped being finite, and the epoch with it.
        """
        device, first = self.normalize.mean.device, (epoch - 1) * len(self._sizes)
        order = row_order(self.pictures.labels, self.config.seed, epoch, balanced=False)
        total = torch.zeros((), dtype=torch.float64, device=device)
        self.network.train()
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(epoch_generator(self.config.seed, epoch, torch.device("cpu")).initial_seed())
            for number, (pixels, labels) in enumerate(self.pictures.batches(order, self._sizes), first):
                total += self._gradients(pixels, labels) * len(labels)
                if number % _LOOK == 0 and not total.isfinite():
                    break
                self.optimization.step(number)
                if average is not None:
                    average.update(self.network, step=number + 1)
                advance(len(labels))
        return float(total) / self.images

    def attempt(self, size: int) -> None:
        """Compute the gradients of a step with so many grey images, and forget them."""
        grey = torch.full((size, 3, *self.pictures.recipe.crop_size), 128, dtype=torch.uint8)
        self.network.train()
        self.network.zero_grad(set_to_none=True)
        self._gradients(grey, torch.zeros(size, dtype=torch.int64))
        self.network.zero_grad(set_to_none=True)

    def _gradients(self, pixels: Tensor, labels: Tensor) -> Tensor:
        """Add the gradients of the mean loss of a batch to the parameters; that loss, float64, on the device."""
        device = self.normalize.mean.device
        images = self._augmentation(pixels.to(device, non_blocking=True))
        inputs = self._augmentation.erased(self.normalize(images))
        targets = labels.to(device, non_blocking=True)
        if self._mix is not None:
            inputs, targets = self._mix(inputs, targets)
        loss: Tensor = self.loss(self.network(inputs), targets).mean()
        loss.backward()
        return loss.detach().double()


def _batch_sizes(images: int, size: int, *, alone: bool) -> list[int]:
    """The sizes of an epoch's batches; where one image may not be ``alone`` in a batch, such a last one is left out."""
    if size == 1 and not alone:
        raise InputError(
            "--batch-size: 1 found, but batch normalisation takes the statistics of each batch; expected 2 or more, or "
            "`batch_norm` frozen"
        )
    sizes = [min(size, images - start) for start in range(0, images, size)]
    return sizes if alone or sizes[-1] > 1 else sizes[:-1]
