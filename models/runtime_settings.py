"""What an opened file runs on."""

from dataclasses import dataclass, field

from ..core.records import OPTIONAL


@dataclass(frozen=True)
class RuntimeSettings:
    """What a file runs on, for reports.

    Attributes:
        runtime: Package and version.
        provider: The execution provider, or torch's device.
        threads: Threads inside an operator.
        provider_options: Of an execution provider.
    """

    runtime: str
    provider: str
    threads: int
    provider_options: dict[str, str] | None = field(default=None, metadata=OPTIONAL)
