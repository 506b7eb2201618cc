"""Where progress is shown: standard error, so that standard output stays for results."""

from rich.console import Console

console = Console(stderr=True)
