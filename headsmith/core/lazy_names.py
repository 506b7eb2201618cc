"""The public names of a package, loaded on first use; one that is misspelt is told with the nearest."""

import difflib
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import lazy_loader

Names = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


class UnknownNameError(AttributeError):
    """A name that a package has not; what it may have been is looked up where the message is read."""

    def __init__(self, package: str, name: str, names: Sequence[str], beside: Sequence[str]) -> None:
        super().__init__(name=name)
        self.package, self.names, self.beside = package, names, beside

    def __str__(self) -> str:
        """One line with the name in a package beside, or else with the nearest names."""
        places = {
            name: f"{self.package}.{part}.{name}"
            for part in reversed(self.beside)
            for name in importlib.import_module(f"{self.package}.{part}").__all__
        }
        places |= {name: f"{self.package}.{name}" for name in (*self.beside, *self.names)}
        alike = [self.name] if self.name in places else difflib.get_close_matches(str(self.name), places)
        hint = f"; did you mean {' or '.join(places[name] for name in alike)}?" if alike else ""
        return f"{self.package} has no {self.name!r}{hint}"


def lazy_names(package: str, file: str, beside: Sequence[str] = ()) -> Names:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package whose stub beside ``file`` says where its names are.

    Args:
        package: Its ``__name__``.
        file: Its ``__file__``.
        beside: Packages in it that have public names of their own.
    """
    load, listing, names = lazy_loader.attach_stub(package, file)

    def find(name: str) -> Any:
        if name in names:
            return load(name)
        if name in beside:
            return importlib.import_module(f"{package}.{name}")
        raise UnknownNameError(package, name, names, beside)

    return find, listing, names
