"""Files of ``torch.save``, read so that nothing in them is run and no bit of them is wrong unseen."""

import pickle
import warnings
from pathlib import Path
from typing import Any

from .archive import checked_archive, is_archive
from .bounded_file import ToItsEnd
from .errors import DamagedFileError, InputError
from .printable import printable


class PicklesError(InputError):
    """A file holds other objects than tensors, which could run code."""


def load_tensors(path: Path, again: str = "get it again") -> Any:
    """What ``torch.save`` wrote: tensors on the CPU, numbers, text, and containers of those.

    Since torch 1.6 a file is a zip archive; it is checked to its last checksum, and tensors stay in the file until they
    are read (mapped: a tensor then cannot reach beyond its file either). Before, it was a row of pickles.

    Args:
        path: The file.
        again: What to do where it is damaged.

    Raises:
        PicklesError: It holds other objects.
        DamagedFileError: It is damaged, or was not written by torch.
    """
    import torch

    archive = is_archive(path)
    if archive:
        checked_archive(path, again)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the errors say more
            if archive:
                return torch.load(path, map_location="cpu", mmap=True, weights_only=True)
            with ToItsEnd(path) as file:
                found = torch.load(file, map_location="cpu", weights_only=True)
            _check_sizes(found, path.stat().st_size)
            return found
    except Exception as error:  # noqa: BLE001 - whatever torch stumbles over in a damaged file
        if isinstance(error, pickle.UnpicklingError) and (archive or _first(path) == b"\x80"):
            raise PicklesError(f"{path}: holds pickled objects other than tensors, which could run code") from None
        reason = printable((str(error).strip().splitlines() or [type(error).__name__])[0])
        raise DamagedFileError(f"{path}: damaged or not a torch.save file ({reason[:300]}); {again}") from None


def _check_sizes(found: Any, size: int) -> None:
    """Raise a `ValueError` where tensors hold more than their file: torch sets memory aside as the file states."""
    import torch
    from torch.utils._pytree import tree_leaves

    storages = [leaf.untyped_storage() for leaf in tree_leaves(found) if isinstance(leaf, torch.Tensor)]
    stated = sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())
    if stated > size:
        raise ValueError(f"tensors of {stated:,} bytes in a file of {size:,}")


def _first(path: Path) -> bytes:
    """A file's first byte: 0x80 begins a pickle."""
    with path.open("rb") as file:
        return file.read(1)
