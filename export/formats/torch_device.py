"""The device of files that run under torch."""

import torch

from ...core.errors import ProviderError


def torch_device(provider: str) -> torch.device:
    """The device of a file that runs under torch.

    Raises:
        ProviderError: torch finds no such device here.
    """
    if provider == "cuda" and not torch.cuda.is_available():
        raise ProviderError(f"--provider cuda: torch {torch.__version__} finds no CUDA device; use --provider cpu")
    return torch.device(provider)
