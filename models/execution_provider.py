"""onnxruntime's execution providers: how they are called here, their options, and where they are to be had."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.errors import InputError, ProviderError, near
from ..core.printable import short, shown
from ..core.yaml_file import read_yaml

_ENDING = "ExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
_CPU, _CUDA, _OPENVINO, _XNNPACK = (f"{name}{_ENDING}" for name in ("CPU", "CUDA", "OpenVINO", "Xnnpack"))
_OTHERWISE = {"DmlExecutionProvider": "directml"}
# TF32, the default of this provider, moves logits by up to 1e-1; the search for the fastest convolution is repeated for
# every new batch size.
_CUDA_OPTIONS = {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}
_CUDA_PACKAGE = "pip install 'onnxruntime-gpu[cuda,cudnn]'"
_DRIVER = "on a machine with an NVIDIA driver that fits it"
_PACKAGES = {
    _CUDA: f"{_CUDA_PACKAGE} {_DRIVER}",
    TENSORRT: f"{_CUDA_PACKAGE} 'tensorrt-cu13<11' {_DRIVER}",
    _OPENVINO: "install onnxruntime-openvino into a folder of its own (docs/deploy.md)",
    "DmlExecutionProvider": "pip install onnxruntime-directml in the place of onnxruntime, on Windows",
    "CoreMLExecutionProvider": "pip install onnxruntime on macOS",
    "QNNExecutionProvider": "pip install onnxruntime-qnn in the place of onnxruntime",
    "MIGraphXExecutionProvider": "pip install onnxruntime-migraphx in the place of onnxruntime, with ROCm",
    "CANNExecutionProvider": "pip install onnxruntime-cann in the place of onnxruntime",
}
_KEYS = ("provider", "name", "options")
SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class ExecutionProvider:
    """An execution provider as a user asks for it.

    Attributes:
        name: Its name in tables, and of a benchmark's folder.
        kind: What onnxruntime calls it.
        options: Those that the user gave, as onnxruntime takes them.
    """

    name: str
    kind: str
    options: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    @property
    def is_cpu(self) -> bool:
        """Whether it is onnxruntime's own for the CPU."""
        return self.kind == _CPU

    @property
    def on_cuda(self) -> bool:
        """Whether it computes on an NVIDIA card by CUDA, in whose memory inputs can lie."""
        return self.kind in (_CUDA, TENSORRT)

    @property
    def asked(self) -> Any:
        """What tells it from others, however it is called: JSON values; without options a word, as it ever was."""
        word = short_name(self.kind)
        return [word, dict(sorted(self.options.items()))] if self.options else word

    @property
    def others(self) -> list[str]:
        """The providers that may run the nodes which it does not."""
        return [_CUDA, _CPU] if self.kind == TENSORRT else [] if self.is_cpu else [_CPU]

    def with_defaults(self, threads: int) -> dict[str, str]:
        """All options that a session gets.

        Args:
            threads: Threads inside an operator, where the provider has its own.
        """
        defaults = {_OPENVINO: {"num_of_threads": threads}, _XNNPACK: {"intra_op_num_threads": threads}}
        own = _CUDA_OPTIONS if self.kind == _CUDA else {name: str(n) for name, n in defaults.get(self.kind, {}).items()}
        return own | self.options


CPU = ExecutionProvider("cpu", _CPU)
AnyProvider = str | Path | ExecutionProvider


def package_of(kind: str) -> str:
    """How to get a provider."""
    return _PACKAGES.get(kind, f"install an onnxruntime that was built with {kind}")


def short_name(kind: str) -> str:
    """``cpu`` for ``CPUExecutionProvider``."""
    return _OTHERWISE.get(kind, kind.removesuffix(_ENDING).lower())


def provider_of(given: Any, where: str = "--provider") -> ExecutionProvider:
    """The provider that a word, a YAML file or what such a file holds stands for.

    A file says ``provider: WORD``, ``options`` (what onnxruntime's documentation of the provider names) and perhaps
    the ``name`` that tables give it, by default the file's.

    Args:
        given: A word such as ``openvino``, the path of a YAML file, a mapping, or a provider, which stays as it is.
        where: What it is, for errors.

    Raises:
        InputError: None of these; a key or a value that means nothing.
        ProviderError: The installed onnxruntime was built without it.
    """
    if isinstance(given, ExecutionProvider):
        return given
    if isinstance(given, Path) or (isinstance(given, str) and given.endswith(SUFFIXES)):
        return _of_mapping(read_yaml(given), str(given), Path(given).stem)
    if isinstance(given, str):
        return ExecutionProvider(given, _kind(given, where))
    return _of_mapping(given, where, None)


def providers_of(given: Any) -> tuple[ExecutionProvider, ...]:
    """The providers that one or several of what `provider_of` takes stand for, each of another name.

    Raises:
        InputError: None, or two of one name; see `provider_of` for the others.
    """
    found = tuple(map(provider_of, given if isinstance(given, list | tuple) else [given]))
    names = [one.name for one in found]
    if len(set(names)) < len(names) or not names:
        said = ", ".join(names) or "none"
        raise InputError(f"--provider: {said} found, expected some, each once; a `name` in YAML tells two apart")
    return found


def _of_mapping(values: Any, where: str, name: str | None) -> ExecutionProvider:
    if not isinstance(values, Mapping) or not isinstance(values.get("provider"), str):
        raise InputError(f"{where}: {shown(values)} found, expected a provider, or keys such as `provider: openvino`")
    for key in values:
        if key not in _KEYS:
            known = ", ".join(_KEYS)
            raise InputError(f"{where}: {short(key)}: is not known; expected some of {known}{near(key, _KEYS)}")
    word, options = values["provider"], values.get("options") or {}
    called = values.get("name", name or word)
    if not isinstance(called, str) or re.fullmatch(r"\w[\w.+-]*", called) is None:
        raise InputError(f"{where}: name: {shown(called)} found, expected letters, digits and any of `_.+-`")
    if not isinstance(options, Mapping):
        raise InputError(f"{where}: options: {shown(options)} found, expected keys such as `device_type: CPU`")
    kind = _kind(word, f"{where}: provider")
    return ExecutionProvider(called, kind, {key: _text(value, f"{where}: {key}") for key, value in options.items()})


def _text(value: Any, where: str) -> str:
    """An option as onnxruntime takes it, which is text; OpenVINO's ``load_config`` is JSON."""
    if isinstance(value, Mapping):
        return json.dumps(value)
    if isinstance(value, str | int | float):  # True and False as Python writes them, which all providers read
        return str(value)
    raise InputError(f"{where}: {shown(value)} found, expected text, a number, true or false, or keys")


def _kind(word: str, where: str) -> str:
    """What onnxruntime calls it.

    Raises:
        InputError: onnxruntime knows no such provider.
        ProviderError: The installed one was built without it.
    """
    import onnxruntime

    available: list[str] = onnxruntime.get_available_providers()
    known: dict[str, str] = {short_name(kind): kind for kind in [*onnxruntime.get_all_providers(), *available]}
    has = f"{runtime()} has {', '.join(map(short_name, available))}"
    if word not in known:
        raise InputError(f"{where} {word}: not known; this {has}{near(word, known)}")
    if known[word] not in available:
        raise ProviderError(f"{where} {word}: this {has}; {package_of(known[word])}, or use cpu")
    return known[word]


def runtime() -> str:
    """The distribution of the onnxruntime that is imported, and its version: ``onnxruntime-gpu 1.31.1``."""
    import onnxruntime

    return " ".join([onnxruntime.package_name or "onnxruntime", onnxruntime.__version__])
