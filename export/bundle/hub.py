"""Bundles from the Hugging Face hub, through its own client."""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...core.errors import InputError
from ...core.version import __version__

HUB = "hf:"


def local_folder(source: str) -> Path:
    """The folder that a bundle is in.

    Args:
        source: A folder, which is returned; or ``hf:USER/REPO``, which is downloaded into the hub's cache. What is
            there in the same version is not downloaded again, and without a network the last download is taken.

    Raises:
        InputError: No such repository, no right to read it, or no network.
    """
    if not source.startswith(HUB):
        return Path(source)
    from huggingface_hub import snapshot_download

    with hub_errors(source):
        found = snapshot_download(source.removeprefix(HUB), library_name="headsmith", library_version=__version__)
    return Path(found)


@contextmanager
def hub_errors(repo: str) -> Iterator[None]:
    """What the hub or the way to it refuses becomes an `InputError` that names ``repo``."""
    from huggingface_hub import errors

    refusals = (
        errors.HTTPError,  # type: ignore[attr-defined]  # of the library that it is built on
        errors.HFValidationError,
        errors.LocalEntryNotFoundError,
        errors.LocalTokenNotFoundError,
        errors.OfflineModeIsEnabled,
        RuntimeError,  # an upload that broke off
    )
    try:
        yield
    except refusals as error:
        reason = textwrap.shorten(str(error) or type(error).__name__, 250, placeholder=" ...")
        raise InputError(f"{repo}: {reason}; check the name, the network and the token (`hf auth login`)") from error
