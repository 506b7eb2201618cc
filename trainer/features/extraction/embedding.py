"""From decoded pixels to features, on a device that never waits for the results of the batch before."""

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ....core.errors import InputError
from ....models.backbone import Backbone
from ....models.preprocessing_layers import Normalize
from .request import AMP_DTYPE
from .views import Pixels

# A share of the largest feature: far above rounding in float32, whose order depends on the batch.
BATCH_TOLERANCE = 1e-2


class BeyondRangeError(InputError):
    """A feature that the stored dtype has no number for."""


@dataclass
class Pending:
    """Features on their way to the CPU.

    Attributes:
        ids: N sample ids.
        stored: ``(N, D)`` in the stored dtype; there once `wait` returns.
        finite: ``(N,)`` bool, whether the features were finite in float32.
        hint: What to do where they are not.
        event: Set when they are there; None where they are there at once.
    """

    ids: list[str]
    stored: Tensor
    finite: Tensor
    hint: str
    event: torch.cuda.Event | None

    def wait(self) -> Tensor:
        """The features, ``(N, D)``, in the stored dtype, on the CPU.

        Raises:
            InputError: One of them is not finite.
            BeyondRangeError: One of them is not in the stored dtype.
        """
        if self.event is not None:
            self.event.synchronize()
        self._check(self.finite, f"the backbone gives NaN or infinite features; {self.hint}")
        kind, fits = self.stored.dtype, torch.isfinite(self.stored).all(dim=1)
        self._check(fits, f"a feature is beyond {kind}'s range; extract with --dtype float32", BeyondRangeError)
        return self.stored

    def _check(self, good: Tensor, problem: str, kind: type[InputError] = InputError) -> None:
        if not good.all():
            raise kind(f"{self.ids[int((~good).nonzero()[0])]}: {problem}")


class Embedder:
    """A frozen backbone with its normalisation, on a device, channels last.

    Without TF32, so that features are those of the exported file, and of a CPU; unless ``amp`` is asked for.

    Args:
        backbone: The backbone; it is moved to the device.
        device: Where it runs.
        dtype: How features are stored.
        amp: Whether it runs under autocast to float16.

    Raises:
        InputError: ``amp`` without a CUDA device.
    """

    def __init__(self, backbone: Backbone, device: torch.device, dtype: torch.dtype, amp: bool) -> None:
        if amp and device.type != "cuda":
            raise InputError(f"--amp: only for CUDA devices, this one is {device.type}; leave it out")
        self.device, self.dtype, self.amp = device, dtype, amp
        self.feature_dim = backbone.feature_dim
        self.network = nn.Sequential(Normalize(backbone.preprocessing), backbone).eval().to(device)
        self.network.to(memory_format=torch.channels_last)
        self._compared: set[int] = set()

    @torch.inference_mode()
    def __call__(self, pixels: Pixels, ids: list[str]) -> Pending:
        """Begin to compute the features of pixels ``(N, H, W, 3)``, uint8.

        On a CUDA device this returns before the work is done. Of the first batch of each size one image is run alone.

        Raises:
            InputError: That image has other features alone than in its batch, or each time.
        """
        hint = "check its weights and the image" + (", or extract without --amp" if self.amp else "")
        with torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext():
            features = self._forward(torch.from_numpy(np.ascontiguousarray(pixels)))
            if len(pixels) not in self._compared and not self.amp:
                self._compare(features, pixels[-1:], ids[-1])
            finite = torch.isfinite(features).all(dim=1).to("cpu", non_blocking=True)
            stored = features.to(self.dtype).to("cpu", non_blocking=True)
            event = torch.cuda.Event() if self.device.type == "cuda" else None
            if event is not None:
                event.record()
        return Pending(ids, stored, finite, hint, event)

    def _compare(self, features: Tensor, last: Pixels, name: str) -> None:
        """Refuse a network whose features depend on chance or on the batch; what is not finite is told elsewhere."""
        self._compared.add(len(features))
        allowed = BATCH_TOLERANCE * float(features.abs().max())
        alone = self._forward(torch.from_numpy(np.ascontiguousarray(last)))
        off = float((features[-1:] - alone).abs().max())
        if torch.isfinite(features).all() and not off <= allowed:
            again = self._forward(torch.from_numpy(np.ascontiguousarray(last)))
            if len(features) == 1 or not float((again - alone).abs().max()) <= allowed:
                raise InputError(
                    f"{name}: the backbone gives the same image other features each time (off by {off:.2g}): it draws "
                    "random numbers, as dropout does in training mode; leave them out of its graph"
                )
            raise InputError(
                f"{name}: the backbone gives other features in a batch of {len(features)} than alone (off by "
                f"{off:.2g}): they depend on the batch; correct its graph, or extract with another --batch-size"
            )

    def _forward(self, pixels: Tensor) -> Tensor:
        if self.device.type == "cuda":
            pixels = pixels.pin_memory().to(self.device, non_blocking=True)
        autocast = torch.autocast(self.device.type, getattr(torch, AMP_DTYPE), enabled=self.amp)
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False), autocast:
            features: Tensor = self.network(pixels.permute(0, 3, 1, 2))
        return features.float()
