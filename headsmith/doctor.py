"""What this machine can do: versions, devices, and the execution providers that really load."""

from dataclasses import dataclass

import onnxruntime
import torch
from rich.table import Table

from .core.cpus import default_threads
from .core.environment import describe_device, versions
from .core.errors import InputError
from .core.records import to_json
from .models.execution_provider import ExecutionProvider
from .models.onnx_session import require_provider
from .show import console, show_json


@dataclass(frozen=True)
class Machine:
    """What a machine can do.

    Attributes:
        versions: Of Python and the packages.
        cores: Threads that are used where nobody says how many.
        devices: The processor and the GPUs, in words.
        providers: By execution provider of onnxruntime, whether a session on it really starts.
    """

    versions: dict[str, str]
    cores: int
    devices: list[str]
    providers: dict[str, bool]


def examine() -> Machine:
    """What this machine can do."""
    devices = [describe_device(torch.device("cpu"))]
    devices += [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return Machine(
        versions(), default_threads(), devices, {name: _loads(name) for name in onnxruntime.get_available_providers()}
    )


def _loads(kind: str) -> bool:
    """Whether a session on a provider starts."""
    try:
        require_provider(ExecutionProvider(kind, kind))
    except InputError:
        return False
    return True


def show(found: Machine, as_json: bool) -> None:
    """Print what `examine` found."""
    if as_json:
        show_json(to_json(found))
        return
    table = Table("what", "found", show_header=False)
    for name, version in found.versions.items():
        table.add_row(name, version)
    table.add_row("cores", str(found.cores))
    for device in found.devices:
        table.add_row("device", device)
    for provider, loads in found.providers.items():
        table.add_row(provider, "[green]loads[/]" if loads else "[red]installed, but does not load[/]")
    console.print(table)
