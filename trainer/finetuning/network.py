"""The network that is trained: a backbone whose parts may learn, and a head."""

from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ...models.backbone import Backbone
from ...models.heads import Head
from .blocks import give_matcher, let_learn
from .settings import TRAINED, FinetuneConfig


class Network(nn.Module):
    """Normalised images ``(N, 3, H, W)`` to logits ``(N, C)``, float32.

    Attributes:
        backbone: The network of the backbone.
        head: The head.
    """

    def __init__(self, backbone: Backbone, head: Head, config: FinetuneConfig) -> None:
        super().__init__()
        give_matcher(backbone.network)
        let_learn(backbone, config.unfreeze)
        self.backbone, self.head, self._features = backbone.network, head, backbone.features
        self._statistics = config.batch_norm == TRAINED
        self._amp = config.amp

    def forward(self, images: Tensor) -> Tensor:
        """Logits; in training on CUDA the features are computed in bfloat16, if that was asked for."""
        images = images.contiguous(memory_format=torch.channels_last)  # a third faster on a CPU too
        with torch.autocast(images.device.type, torch.bfloat16, self._amp and images.is_cuda and self.training):
            features: Tensor = self._features(self.backbone, images)
        logits: Tensor = self.head(features.float())
        return logits

    def train(self, mode: bool = True) -> Self:
        """Training mode for what learns; what does not stays as it is deployed, frozen batch normalisation too."""
        super().train(mode)
        for module in self.backbone.modules():
            own = list(module.parameters())
            if own and not any(parameter.requires_grad for parameter in own):
                module.eval()
            if isinstance(module, _BatchNorm) and not self._statistics:
                module.eval()
        return self

    def depends_on_batch(self) -> bool:
        """Whether, in training, an image's logits depend on the others of its batch."""
        self.train()
        return any(isinstance(module, _BatchNorm) and module.training for module in self.backbone.modules())

    def learning(self) -> int:
        """How many weights learn."""
        return sum(one.numel() for one in self.parameters() if one.requires_grad)
