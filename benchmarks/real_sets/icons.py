"""Icons of desktop themes; a class is an icon's name, and themes are held out with what was made from them."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from PIL import Image

from .pictures import pictures_to_features, rendered
from .registries import members
from .sources import DESKTOP_ICONS
from .splits import Item, by_source, thinned

# Themes with the family that they are of: descendants share pictures. Dark variants draw in white and are left out.
FAMILY_OF = {
    "Adwaita": "gnome", "gnome": "gnome", "mate": "gnome", "breeze": "breeze", "bloom": "deepin", "Sea": "deepin",
    "bloom-classic": "deepin", "Vintage": "deepin", "elementary": "elementary", "elementary-xfce": "elementary",
    "Faba": "moka", "Moka": "moka", "Mint-Y": "moka", "Faenza": "faenza", "Obsidian": "faenza", "gartoon": "gartoon",
    "Nuovo": "nuovo", "yasis": "yasis", "nuoveXT2": "nuovext", "Numix": "numix", "Numix-Circle": "numix",
    "oxygen": "oxygen", "Paper": "papirus", "Papirus": "papirus", "ePapirus": "papirus", "suru": "suru",
    "Tango": "tango", "Yaru": "yaru", "Suede": "suede",
}  # fmt: skip
VAL, TEST = ("elementary", "faenza"), ("breeze", "oxygen", "yaru")
# Grey, of 255, that the darkest pixel of an icon has to be below.
_DARKEST = 190
_FILE = re.compile(r"/icons/[^/]+/(?!.*symbolic).*\.(png|svg|svgz)$")


def desktop_icons(packages: Mapping[str, Path], out: Path) -> None:
    """One picture of each name in each theme, of the size that is nearest to 64 pixels."""
    best: dict[tuple[str, str], tuple[int, str, bytes]] = {}
    for package in DESKTOP_ICONS:
        for path, content in members(packages[package], _FILE):
            parts = PurePosixPath(path.split("/icons/", 1)[1]).parts
            off = distance(parts[1:-1])
            key = parts[0], parts[-1].rsplit(".", 1)[0]
            if parts[0] in FAMILY_OF and off is not None and (key not in best or (off, path) < best[key][:2]):
                best[key] = off, path, content
    splits = by_source(_items(best), VAL, TEST, least=3, classes=1000)
    splits = thinned(splits, {"train": 7, "val": 2, "test": 2})
    pictures_to_features(splits, _picture, out, size=96)


def _items(best: Mapping[tuple[str, str], tuple[int, str, bytes]]) -> Iterable[Item]:
    for (theme, name), (_, path, content) in best.items():
        yield Item(name, FAMILY_OF[theme], theme, (content, path.rsplit(".", 1)[1]))


def _picture(item: Item) -> Image.Image | None:
    """An icon, or None where it is made for dark panels and is hardly seen on white."""
    picture = rendered(*item.content)
    return picture if picture and picture.convert("L").getextrema()[0] < _DARKEST else None


def distance(folders: Iterable[str]) -> int | None:
    """How far from 64 pixels the icons in a folder are, read from its name; None for those too small to see.

    ``scalable`` is 64 pixels, ``32x32@2x`` as well.
    """
    for folder in folders:
        if found := re.fullmatch(r"(\d+)(x\d+)?(@(\d)x?)?", folder):
            pixels = int(found[1]) * int(found[4] or 1)
            return abs(pixels - 64) if pixels >= 22 else None
    return 0
