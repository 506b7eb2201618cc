"""The networks of timm and torchvision by name and by pattern."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from ...core.errors import InputError, near

TIMM, TORCHVISION, ONNX, LITE0 = "timm:", "torchvision:", "onnx:", "lite0"


def is_pattern(text: str) -> bool:
    """Whether it may match several names, as in a shell."""
    return any(letter in text for letter in "*?[")


def matching(source: str, where: str) -> list[str]:
    """The pretrained networks that a pattern matches, or weights of torchvision; a name alone as it is, unchecked.

    Args:
        source: ``timm:PATTERN``, ``torchvision:PATTERN`` or ``torchvision:PATTERN/PATTERN``, the second for weights.
        where: What a message begins with.

    Raises:
        InputError: A pattern that matches nothing.
    """
    library, _, pattern = source.partition(":")
    if not is_pattern(pattern):
        return [source]
    found, of, known = _timm(pattern) if library == "timm" else _torchvision(pattern)
    if not found:
        raise InputError(f"{where}: matches none of {of}{_hint(pattern, known)}")
    return found


def check_name(source: str, where: str) -> None:
    """Refuse a name that the installed timm or torchvision does not know.

    Args:
        source: ``timm:NAME`` or ``torchvision:NAME[/WEIGHTS]``.
        where: What the message begins with.

    Raises:
        InputError: No such network, or no such weights of it; near names are told.
    """
    if source.startswith(TIMM):
        _check_timm(source.removeprefix(TIMM), where)
    else:
        _check_torchvision(source.removeprefix(TORCHVISION), where)


def _check_timm(name: str, where: str) -> None:
    import timm

    architecture, _, tag = name.partition(".")
    known = timm.list_models()
    if architecture not in known:
        raise InputError(f"{where}: no such model in timm {timm.__version__}{near(architecture, known)}")
    tags = [full.partition(".")[2] for full in timm.list_models(f"{architecture}.*", pretrained=True)]
    if tag and tag not in tags:
        raise _no_weights(where, tags)


def _check_torchvision(name: str, where: str) -> None:
    import torchvision

    name, _, tag = name.partition("/")
    known = torchvision.models.list_models(module=torchvision.models)
    if name not in known:
        raise InputError(f"{where}: no such classifier{near(name, known)}")
    choices = torchvision.models.get_model_weights(name).__members__
    if tag and tag not in choices:
        raise _no_weights(where, choices)


def _no_weights(where: str, known: Iterable[str]) -> InputError:
    return InputError(f"{where}: no such weights; expected one of {', '.join(known)}")


def _timm(pattern: str) -> tuple[list[str], str, list[str]]:
    """The names that match, what they are, and names to compare with one that does not."""
    import timm

    found = [f"{TIMM}{name}" for name in timm.list_models(pattern, pretrained=True)]
    return found, "timm's pretrained models", timm.list_models()


def _torchvision(pattern: str) -> tuple[list[str], str, list[str]]:
    import torchvision

    pattern, _, tag = pattern.partition("/")
    known = torchvision.models.list_models(module=torchvision.models)
    names = [name for name in known if fnmatchcase(name, pattern)]
    if not tag:
        return [f"{TORCHVISION}{name}" for name in names], "torchvision's classifiers", known
    found = [
        f"{TORCHVISION}{name}/{weight.name}"
        for name in names
        for weight in torchvision.models.get_model_weights(name)
        if fnmatchcase(weight.name, tag)
    ]
    return found, "torchvision's weights", known


def _hint(pattern: str, known: Iterable[str]) -> str:
    """Names near the letters of a pattern."""
    words = re.split(r"[*?/]|\[.*?\]", pattern)
    return next((hint for word in words if word and (hint := near(word, known))), "")
