"""The Hugging Face hub where there may be no network."""

import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

_SECONDS = 10


@contextmanager
def hub_access() -> Iterator[str]:
    """Let libraries load from the hub; where it cannot be reached, from what was downloaded before.

    Left alone they ask an unreachable hub for half a minute, and tell of each try.

    Yields:
        Why the hub cannot be reached; empty where it can, or was not to be asked (``HF_HUB_OFFLINE``).
    """
    from huggingface_hub import constants

    unreachable = "" if constants.HF_HUB_OFFLINE else _why_unreachable(constants.ENDPOINT)
    with ExitStack() as stack:
        stack.enter_context(_quiet(logging.getLogger("huggingface_hub")))
        if unreachable:
            configs: list[Any] = [constants, getattr(sys.modules.get("datasets"), "config", None)]
            for config in filter(None, configs):
                stack.callback(setattr, config, "HF_HUB_OFFLINE", config.HF_HUB_OFFLINE)
                config.HF_HUB_OFFLINE = True
        yield unreachable


def _why_unreachable(endpoint: str) -> str:
    from huggingface_hub import errors, get_session

    try:
        get_session().head(endpoint, timeout=_SECONDS)
    except errors.HTTPError as error:  # type: ignore[attr-defined]  # of the library that it is built on
        return f"{endpoint} cannot be reached: {error or type(error).__name__}"
    return ""


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
