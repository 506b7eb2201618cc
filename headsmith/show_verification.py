"""What a person sees of a verification."""

from typing import TYPE_CHECKING

from rich.table import Table

from .core.counted import counted
from .core.printable import printable
from .core.records import to_json
from .core.terminal import escape
from .show import console, show_json, show_warnings

if TYPE_CHECKING:
    from .export import Verification


def show_verification(found: "Verification", as_json: bool) -> None:
    """Each file's comparison with its answers at the export, and versions that are others now."""
    if as_json:
        show_json(to_json(found))
        return
    table = Table("file", "provider", "inputs", "largest difference", "allowed", "flips", "")
    for name, report in found.files.items():
        table.add_row(
            name,
            found.settings[name].provider.removesuffix("ExecutionProvider").lower(),
            f"{report.n:,}",
            report.furthest(".1e"),
            f"{report.allowed_difference:.1e}",
            str(report.flipped),
            "[green]as exported[/]" if report.passed else "[red]different[/]",
        )
    console.print(f"[bold]{escape(found.bundle)}[/]  hashes fit; answers to inputs of {escape(found.data)}:")
    console.print(table)
    for name, report in found.files.items():
        console.print(f"{escape(name)} at batches of {', '.join(map(str, sorted(report.batches)))}")
    show_warnings(found.warnings)
    for package, version in found.versions.items():
        then = found.exported_with.get(package)
        if then != version:
            console.print(printable(f"{package} {version}, exported with {then or 'none'}"), markup=False)
    if found.changed:
        listed = ", ".join(found.changed[:3])
        others = counted(len(found.changed), "input is another", "inputs are others")
        console.print(f"[yellow]{others} here, not compared:[/] {escape(listed)}")
