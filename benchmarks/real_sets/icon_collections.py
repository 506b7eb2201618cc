"""Icon collections on npm that share one format: emoji of vendors, icons of user interfaces, flags of countries."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from .pictures import pictures_to_features, rendered
from .registries import package_json
from .sources import FLAGS, INTERFACE_ICONS
from .splits import Item, by_source, thinned

SCOPE = "@iconify-json/"
# Collections with the vendor that drew them.
EMOJI = {
    "noto": "google", "noto-v1": "google blobs", "twemoji": "twitter", "openmoji": "openmoji", "fxemoji": "mozilla",
    "emojione": "emojione", "emojione-v1": "emojione 1", "emojione-monotone": "emojione", "fluent-emoji": "microsoft",
    "fluent-emoji-flat": "microsoft", "fluent-emoji-high-contrast": "microsoft", "streamline-emojis": "streamline",
}  # fmt: skip
# What stands at the end of a name for a style or a size.
_STYLE = re.compile(
    r"outlined?|fill|filled|solid|linear|line|bold|thin|light|duotone|twotone|sharp|rounded|round|regular|broken|remix|"
    r"12|16|20|24|28|32|48"
)


@dataclass(frozen=True)
class Collection:
    """An icon collection: the body and box of each icon, by its name, and second names."""

    icons: Mapping[str, Mapping[str, Any]]
    aliases: Mapping[str, str]
    box: tuple[float, float]

    @classmethod
    def load(cls, path: Path) -> "Collection":
        """Read a package's ``icons.json``."""
        found: Any = package_json(path, "icons.json")
        plain = {
            name: alias["parent"]
            for name, alias in found.get("aliases", {}).items()
            if not alias.keys() & {"rotate", "hFlip", "vFlip"}
        }
        return cls(found["icons"], plain, (found.get("width", 16), found.get("height", 16)))

    def named(self) -> Iterator[tuple[str, str]]:
        """Names with the icon that each stands for; own names come first."""
        yield from ((name, name) for name in sorted(self.icons))
        yield from ((name, icon) for name, icon in sorted(self.aliases.items()) if icon in self.icons)

    def svg(self, name: str) -> bytes:
        """An icon as a file."""
        icon = self.icons[name]
        left, top = icon.get("left", 0), icon.get("top", 0)
        width, height = icon.get("width", self.box[0]), icon.get("height", self.box[1])
        body = icon["body"].replace("currentColor", "#000")
        head = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" color="#000"'
        return f'<svg {head} viewBox="{left} {top} {width} {height}">{body}</svg>'.encode()


def emoji(packages: Mapping[str, Path], out: Path) -> None:
    """The same emoji by several vendors; skin tones and flags are left out."""
    collections = _load(packages, EMOJI)
    base = [
        name for name in collections["noto"].icons if "skin-tone" not in name and not re.match("flag|[a-z0-9]$", name)
    ]
    items = []
    for collection, vendor in EMOJI.items():
        taken: dict[str, str] = {}
        for name, icon in collections[collection].named():
            if name in set(base) and icon not in taken.values():
                taken.setdefault(name, icon)
        items += [Item(name, vendor, collection, (collection, icon)) for name, icon in taken.items()]
    splits = by_source(items, ("openmoji",), ("microsoft",), least=4, classes=1200)
    _write(splits, collections, out, size=96)


def interface_icons(packages: Mapping[str, Path], out: Path) -> None:
    """Icons of user interfaces by their names without styles, up to two styles a collection."""
    collections = _load(packages, INTERFACE_ICONS.all)
    items = []
    for name, collection in collections.items():
        styles = defaultdict(list)
        for icon in sorted(collection.icons, key=lambda icon: (len(icon), icon)):
            styles[without_style(icon)].append(icon)
        items += [Item(base, name, icon, (name, icon)) for base, icons in styles.items() for icon in icons[:2]]
    splits = by_source(items, INTERFACE_ICONS.val, INTERFACE_ICONS.test, least=10, classes=800)
    _write(thinned(splits, {"train": 11, "val": 3, "test": 3}), collections, out, size=64)


def flags(packages: Mapping[str, Path], out: Path) -> None:
    """Flags of countries and territories, with artists held out."""
    collections = _load(packages, FLAGS.all)
    codes = country_codes(package_json(packages[SCOPE + "twemoji"], "chars.json"))
    items = []
    for name, collection in collections.items():
        for other, icon in collection.named():
            plain = re.sub(r"^flag-(for-)?", "flag-", other)
            code = codes.get(plain) or re.sub(r"-(1x1|4x3)$", "", other)
            if code in codes.values() and (plain in codes) == ("moji" in name):
                items.append(Item(code, name, other, (name, icon)))
    _write(by_source(items, FLAGS.val, FLAGS.test, least=3, classes=300), collections, out, size=96)


def without_style(icon: str) -> str:
    """``arrow-left-24-filled`` is ``arrow-left``; a name of styles alone keeps its first."""
    words = icon.split("-")
    while len(words) > 1 and _STYLE.fullmatch(words[-1]):
        words.pop()
    return "-".join(words)


def country_codes(chars: Mapping[str, Any]) -> dict[str, str]:
    """The names of flags with the country's two letters, from pairs of regional indicators (U+1F1E6 is A)."""
    found = {}
    for key, name in sorted(chars.items()):
        if re.fullmatch(r"1f1[ef]\w-1f1[ef]\w", key):
            found[str(name)] = "".join(chr(int(code, 16) - 0x1F1E6 + ord("a")) for code in key.split("-"))
    return found


def _load(packages: Mapping[str, Path], names: Iterable[str]) -> dict[str, Collection]:
    return {name: Collection.load(packages[SCOPE + name]) for name in names}


def _write(splits: Mapping[str, list[Item]], collections: Mapping[str, Collection], out: Path, *, size: int) -> None:
    def picture(item: Item) -> Image.Image | None:
        collection, icon = item.content
        return rendered(collections[collection].svg(icon), "svg")

    pictures_to_features(splits, picture, out, size=size)
