"""From what a user names to backbones: lists, patterns, folders of ONNX files, YAML files of these."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ...core.arguments import typed
from ...core.errors import InputError, near
from ...core.printable import shown
from ...core.yaml_file import read_yaml
from .libraries import LITE0, ONNX, TIMM, TORCHVISION, check_name, is_pattern, matching

MOST = 50
_SUFFIXES = (".yaml", ".yml")
_EXPECTED = (
    "a list ({}), lite0, timm:NAME, torchvision:NAME, onnx:FILE, onnx:FOLDER, a pattern (timm:resnet*) or a YAML file"
)


@typed
def expand_backbones(names: Sequence[str], *, allow_many: bool = False, argument: str = "--backbones") -> list[str]:
    """The backbones that are named, each once, in the order given; those of a pattern and of a folder by name.

    Args:
        names: Each a name as `headsmith.load_backbone` takes it; a list (see `backbone_lists`); a pattern over timm or
            torchvision, ``timm:resnet*``, or over both, ``resnet*``; ``onnx:FOLDER`` or ``onnx:PATTERN`` for ONNX
            files; or a YAML file with a list of these, whose paths start at its folder.
        allow_many: More than 50 are allowed.
        argument: What names them, for errors.

    Returns:
        Names as `headsmith.load_backbone` takes them. Of several names of the same weights the first stays.

    Raises:
        InputError: None is named, a name that means nothing (near names are told), or too many.
    """
    found: dict[str, str] = {}
    for name in names:
        for spec in _resolved(name, Path(), f"{argument} {name}"):
            found.setdefault(_weights(spec), spec)
    if not found:
        raise InputError(f"{argument}: none named, expected {_expected()}")
    if len(found) > MOST and not allow_many:
        raise InputError(
            f"--backbones: {len(found):,} backbones found, expected at most {MOST}; name fewer, or allow so many with "
            f"--yes or a --budget (at a minute each they take {len(found) / 60:.0f} h)"
        )
    return list(found.values())


@cache
def backbone_lists() -> Mapping[str, tuple[str, ...]]:
    """The lists that headsmith brings, by name."""
    lists = read_yaml(Path(__file__).with_name("lists.yaml"))
    return {name: tuple(backbones) for name, backbones in lists.items()}


def _resolved(name: str, folder: Path, where: str) -> Iterator[str]:
    """What one name stands for; relative paths start at ``folder``, and errors with ``where``."""
    if name in backbone_lists():
        yield from backbone_lists()[name]
    elif name == LITE0:
        yield name
    elif name.startswith((TIMM, TORCHVISION)):
        if not is_pattern(name):
            check_name(name, where)
        yield from matching(name, where)
    elif name.startswith(ONNX):
        yield from _onnx(name.removeprefix(ONNX), folder, where)
    elif Path(name).suffix in _SUFFIXES:
        yield from _of_file(folder / name)
    elif is_pattern(name) and ":" not in name:
        yield from _of_both(name, where)
    else:
        raise InputError(f"{where}: expected {_expected()}{_hint(name)}")


def _of_both(pattern: str, where: str) -> Iterator[str]:
    """What a pattern matches in timm, then in torchvision."""
    errors = []
    for library in (TIMM, TORCHVISION):
        try:
            yield from matching(f"{library}{pattern}", where)
        except InputError as error:
            errors.append(error)
    if len(errors) == 2:
        raise errors[0]


def _onnx(name: str, folder: Path, where: str) -> Iterator[str]:
    """A file, the files of a folder, or those that a pattern matches."""
    path = folder / name
    if path.is_file():
        yield f"{ONNX}{path}"
        return
    if path.is_dir():
        found = [one for one in path.iterdir() if one.suffix == ".onnx" and one.is_file()]
    elif is_pattern(name):
        start = Path(path.anchor) if Path(name).is_absolute() else folder
        found = [one for one in start.glob(str(path.relative_to(start))) if one.is_file()]
    else:
        beside = [one.name for one in path.parent.glob("*.onnx")]
        raise InputError(f"{where}: no such file or folder{near(path.name, beside)}")
    if not found:
        raise InputError(f"{where}: no ONNX file in it, expected files that end in .onnx")
    yield from (f"{ONNX}{one}" for one in sorted(found))


def _of_file(path: Path) -> Iterator[str]:
    """The names in a YAML file: a list, or one below the key ``backbones``."""
    values: Any = read_yaml(path)
    if isinstance(values, dict) and set(values) == {"backbones"}:
        values = values["backbones"]
    if not isinstance(values, list) or not values:
        raise InputError(f"{path}: {shown(values)} found, expected a list of backbones, or backbones: with one")
    for place, name in enumerate(values, 1):
        where = f"{path}: backbone {place}"
        if not isinstance(name, str):
            raise InputError(f"{where}: {shown(name)} found, expected a name such as timm:resnet50")
        if Path(name).suffix in _SUFFIXES and not name.startswith(ONNX):
            raise InputError(f"{where}: {name} found, expected no other YAML file; name its backbones here")
        yield from _resolved(name, path.parent, f"{where}: {name}")


def _weights(spec: str) -> str:
    """One spelling for all names of the same weights."""
    if spec.startswith(TIMM):
        import timm

        config = timm.get_pretrained_cfg(name := spec.removeprefix(TIMM))
        return f"{TIMM}{name.partition('.')[0]}.{config.tag if config else ''}"
    if spec.startswith(TORCHVISION):
        import torchvision

        name, _, tag = spec.removeprefix(TORCHVISION).partition("/")
        return f"{TORCHVISION}{torchvision.models.get_model_weights(name)[tag or 'DEFAULT']}"
    return f"{ONNX}{Path(spec.removeprefix(ONNX)).resolve()}" if spec.startswith(ONNX) else spec


def _expected() -> str:
    return _EXPECTED.format(", ".join(backbone_lists()))


def _hint(name: str) -> str:
    """Names of lists, or of networks whose library was left out."""
    import timm
    import torchvision

    if name.partition(".")[0] in timm.list_models():
        return f"; did you mean {TIMM}{name}?"
    if name.partition("/")[0] in torchvision.models.list_models(module=torchvision.models):
        return f"; did you mean {TORCHVISION}{name}?"
    return near(name, (LITE0, *backbone_lists()))
