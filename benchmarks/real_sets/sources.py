"""What `sources.yaml` says: the sources of each set, and which are held out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_FILE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("sources.yaml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Sources:
    """The names of sources, by split."""

    train: Sequence[str]
    val: Sequence[str]
    test: Sequence[str]

    @property
    def all(self) -> list[str]:
        """All of them."""
        return [*self.train, *self.val, *self.test]


GLYPH_FAMILIES, CHINESE = Sources(**_FILE["glyph_families"]), Sources(**_FILE["chinese"])
INTERFACE_ICONS, FLAGS = Sources(**_FILE["interface_icons"]), Sources(**_FILE["flags"])
DESKTOP_ICONS: list[str] = _FILE["desktop_icons"]
DICTIONARIES: list[str] = _FILE["words"]
