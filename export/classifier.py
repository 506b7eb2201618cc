"""The classifier that is deployed: normalisation, backbone, head and top-k as one module."""

import copy
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..core.errors import InputError
from ..models.backbone import Backbone
from ..models.heads import Head
from ..models.preprocessing_layers import Normalize, Resize
from .options import ENCODED, TOP_K

BATCH = "batch"


class Answer(NamedTuple):
    """What a classifier says of N inputs.

    Attributes:
        logits: ``(N, C)`` float32.
        topk_scores: ``(N, k)`` float32, softmax probabilities of the k best classes, k = min(5, C).
        topk_indices: ``(N, k)`` int64, best first; of equal logits the lower index stands first.
        probabilities: ``(N, C)`` float32, softmax of the logits, where they were asked for.
    """

    logits: Tensor
    topk_scores: Tensor
    topk_indices: Tensor
    probabilities: Tensor | None = None


class ChannelsFirst(nn.Module):
    """uint8 pixels ``(N, H, W, 3)`` to ``(N, 3, H, W)``."""

    def forward(self, pixels: Tensor) -> Tensor:
        """Move the channels; channels that come last in memory would lead the exporter to gathers of strides."""
        return pixels.permute(0, 3, 1, 2).contiguous()


class Classifier(nn.Module):
    """A trained head with all that stands before it, frozen, in evaluation mode, on the CPU.

    The head and the backbone are copied, so that what is prepared for export (no gradients, no in-place activations,
    which the exporter decomposes three times slower) does not touch the originals.

    Args:
        head: Feature ``(N, D)`` to logits ``(N, C)``, float32.
        backbone: ``None`` for a head alone, which takes features ``(N, D)``.
        input_format: ``float-nchw``: RGB float32 ``(N, 3, H, W)`` in 0..255; ``uint8-nhwc``: RGB uint8
            ``(N, H, W, 3)``. Both after resize and crop. Means nothing without a backbone.
            ``encoded``: as ``uint8-nhwc``; the decoder is put before it where the file is written.
        resize: With ``uint8-nhwc`` and ``encoded``: H and W are those of any image, resize and crop are inside.
        probabilities: Answer with the softmax of all classes too.

    Raises:
        InputError: The head does not take the backbone's features, or its recipe cannot be written into a graph.
    """

    def __init__(
        self,
        head: Head,
        backbone: Backbone | None = None,
        input_format: str = "float-nchw",
        *,
        resize: bool = False,
        probabilities: bool = False,
    ) -> None:
        super().__init__()
        self.body = nn.Sequential()
        self.resize = resize or input_format == ENCODED
        self.example_shape: tuple[int, ...] = (head.in_features,)
        self.example_dtype = torch.float32
        if backbone is not None:
            self._put_before(head, copy.deepcopy(backbone), input_format)
        self.head: Head = copy.deepcopy(head)
        self.k = min(TOP_K, head.num_classes)
        self.probabilities = probabilities
        self.eval().requires_grad_(False).to("cpu")
        for module in self.modules():
            if getattr(module, "inplace", False):
                setattr(module, "inplace", False)  # noqa: B010 - not every module has the attribute

    def _put_before(self, head: Head, backbone: Backbone, input_format: str) -> None:
        if backbone.feature_dim != head.in_features:
            raise InputError(
                f"head takes {head.in_features} features, the backbone gives {backbone.feature_dim}; "
                "export the run with the backbone of its own feature set"
            )
        height, width = backbone.preprocessing.crop_size
        self.example_shape = (3, height, width)
        if input_format in ("uint8-nhwc", ENCODED):
            self.body.append(ChannelsFirst())
            self.example_shape = (height, width, 3)
            self.example_dtype = torch.uint8
        if self.resize:
            self.body.append(Resize(backbone.preprocessing))
            self.example_shape = (height + 61, width + 29, 3)
        self.body.append(Normalize(backbone.preprocessing)).append(backbone)

    @property
    def backbone(self) -> Backbone | None:
        """What gives the features; ``None`` for a head alone."""
        return next((part for part in self.body if isinstance(part, Backbone)), None)

    def folded(self) -> "Classifier":
        """The classifier as it is written: its head folded, all before it shared with this one."""
        other = Classifier(self.head.folded(), resize=self.resize, probabilities=self.probabilities)
        other.body, other.example_shape, other.example_dtype = self.body, self.example_shape, self.example_dtype
        return other

    def without_resize(self) -> "Classifier":
        """The classifier behind resize and crop, all parts shared with this one; itself where they are not inside."""
        if not self.resize:
            return self
        other = Classifier(self.head, probabilities=self.probabilities)
        other.body = nn.Sequential(*(part for part in self.body if not isinstance(part, Resize)))
        return other

    def forward(self, inputs: Tensor) -> Answer:
        """Classify a batch of pixels or features."""
        return answer(self.head(self.body(inputs)), probabilities=self.probabilities)

    @property
    def outputs(self) -> list[str]:
        """The names of what it answers, in order."""
        return list(Answer._fields) if self.probabilities else list(Answer._fields[:-1])

    def dynamic_axes(self) -> dict[int, torch.export.Dim]:
        """The free axes of its input, by index: the batch, and with `resize` height and width."""
        names = (BATCH, "height", "width") if self.resize else (BATCH,)
        return {axis: torch.export.Dim(name) for axis, name in enumerate(names)}

    def example(self, batch: int = 2) -> Tensor:
        """An input to trace with: a ramp over the whole range of pixels, or over -1..1 for features."""
        count = batch * torch.Size(self.example_shape).numel()
        low, high = (-1.0, 1.0) if len(self.example_shape) == 1 else (0.0, 255.0)
        ramp = torch.linspace(low, high, count).reshape(batch, *self.example_shape)
        return ramp.to(self.example_dtype)


def answer(logits: Tensor, *, probabilities: bool = False) -> Answer:
    """What a classifier says, given its logits ``(N, C)``."""
    indices = _top(logits, min(TOP_K, logits.shape[1]))
    softmax = torch.softmax(logits, dim=-1)
    return Answer(logits, softmax.gather(-1, indices), indices, softmax if probabilities else None)


def _top(logits: Tensor, k: int) -> Tensor:
    """The k best classes: ONNX TopK puts the lower index first among equals, torch.topk promises no order."""
    if torch.onnx.is_in_onnx_export():
        return torch.topk(logits, k, dim=-1).indices
    return torch.sort(logits, dim=-1, descending=True, stable=True).indices[:, :k]


class Graph(nn.Module):
    """A classifier as exporters trace it: its answer is a plain tuple of `Classifier.outputs`."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.classifier = classifier
        self.eval()

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Classify a batch of pixels or features."""
        return tuple(output for output in self.classifier(inputs) if output is not None)
