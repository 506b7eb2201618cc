"""What files that run under torch share: their device, and how they answer."""

from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import Tensor

from ...core.errors import DamagedFileError, InputError, ProviderError
from ...core.printable import printable
from ...models.execution_provider import ExecutionProvider
from ..runtime import Array, Outputs


def torch_device(provider: ExecutionProvider) -> torch.device:
    """The device of a file that runs under torch.

    Raises:
        InputError: Another provider than ``cpu`` and ``cuda``, or options, which torch has none of.
        ProviderError: torch finds no such device here.
    """
    if provider.asked not in ("cpu", "cuda"):
        raise InputError(f"--provider {provider}: runs ONNX files alone; files for torch take cpu or cuda")
    if provider.on_cuda and not torch.cuda.is_available():
        raise ProviderError(f"--provider cuda: torch {torch.__version__} finds no CUDA device; use --provider cpu")
    return torch.device(provider.asked)


def on_device(fed: Array, device: torch.device) -> Tensor:
    """An array as a tensor there; torch takes no view that steps backwards, as ``pixels[..., ::-1]`` does."""
    return torch.from_numpy(fed.copy() if min(fed.strides, default=0) < 0 else fed).to(device)


def answered(module: Callable[[Tensor], Iterable[Tensor | None]], fed: Tensor, path: Path) -> Outputs:
    """What a module of a file answers.

    Raises:
        DamagedFileError: It cannot compute with its own weights, or answers with something else than tensors.
    """
    try:
        return Outputs.of(module(fed))
    except Exception as error:  # noqa: BLE001 - whatever a damaged file makes torch stumble over
        reason = printable((str(error).strip().splitlines() or [type(error).__name__])[-1])
        raise DamagedFileError(f"{path}: does not run under torch ({reason[:300]}); export it again") from None
