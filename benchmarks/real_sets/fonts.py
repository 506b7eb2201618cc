"""Characters of fonts: faces held out, families held out, and Chinese characters with fonts held out."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from matplotlib.ft2font import FT2Font
from PIL import Image, ImageFont

from headsmith.demo.glyphs import FONT_SIZE, class_name, draw, find_faces

from .pictures import pictures_to_features
from .registries import members
from .sources import CHINESE, GLYPH_FAMILIES, Sources
from .splits import Item, by_source, thinned

# What matplotlib ships: each family has faces in train; whole cuts of some families are held out.
FACES = Sources(
    train=(),  # the others
    val=("DejaVuSans-BoldOblique", "DejaVuSerif-Bold", "DejaVuSansMono-Oblique", "STIXGeneralBol"),
    test=("DejaVuSans-Oblique", "DejaVuSerif-BoldItalic", "DejaVuSansMono-Bold", "STIXGeneralItalic"),
)
_FACE = re.compile(r"\.(ttf|otf|ttc)$", re.IGNORECASE)
# Faces that draw other things than the characters, and packages with fonts of many scripts.
_NO_TEXT = re.compile(r"LinBiolinum_K|LinLibertine_(I|DR|M)\.|Integrals|Size|Variants|NonUni|SmallCaps|Smallcaps|Ext-B")
_ONLY = {"noto-core": re.compile(r"Noto(Sans|Serif)-"), "stix": re.compile("STIXGeneral")}


Block = Callable[[str], bool]


def glyph_faces(packages: Mapping[str, Path], out: Path) -> None:
    """The faces of matplotlib's fonts; a face is held out, others of its family are not."""
    faces = {name: path for name, (path, _) in find_faces().items()}
    _draw_set(faces, {name: name for name in faces}, FACES, out, _is_text, least=6)


def glyph_families(packages: Mapping[str, Path], out: Path) -> None:
    """Text fonts of Debian; a family is held out with all its faces."""
    _package_set(packages, GLYPH_FAMILIES, out, _is_text, faces=3)


def chinese(packages: Mapping[str, Path], out: Path) -> None:
    """Chinese characters in Song, Kai, gothic, round and brush fonts; a font is held out."""
    _package_set(packages, CHINESE, out, _is_han, faces=1)


def _is_text(character: str) -> bool:
    code = ord(character)
    private = 0xD800 <= code < 0xF900
    return unicodedata.category(character)[0] in "LNPS" and code < 0x10000 and not private and not _is_han(character)


def _is_han(character: str) -> bool:
    return 0x4E00 <= ord(character) < 0xA000


def _package_set(packages: Mapping[str, Path], sources: Sources, out: Path, block: Block, faces: int) -> None:
    files, source_of = {}, {}
    for family in sources.all:
        folder = out / "fonts" / family
        folder.mkdir(parents=True)
        for name, content in members(packages[f"fonts-{family}"], _FACE):
            if not _NO_TEXT.search(name) and _ONLY.get(family, _FACE).search(Path(name).name):
                (folder / Path(name).name).write_bytes(content)
        covered = {path.name: sum(map(block, characters(path))) for path in sorted(folder.iterdir())}
        for name in sorted(covered, key=lambda name: (-covered[name], name))[:faces]:
            files[f"{family}.{name}"], source_of[f"{family}.{name}"] = folder / name, family
    _draw_set(files, source_of, sources, out, block, least=20)


def _draw_set(
    files: Mapping[str, Path], source_of: Mapping[str, str], sources: Sources, out: Path, block: Block, *, least: int
) -> None:
    items = [
        Item(class_name(character), source_of[face], face, character)
        for face, path in files.items()
        for character in characters(path)
        if block(character)
    ]
    splits = by_source(items, sources.val, sources.test, least=least, classes=1000)
    splits = thinned(splits, {"train": 13, "val": 3, "test": 4})

    def picture(item: Item) -> Image.Image:
        return draw(item.content, _font(str(files[item.name])))

    pictures_to_features(splits, picture, out, size=64)


@lru_cache(256)
def _font(path: str) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(path, FONT_SIZE)


@lru_cache(512)
def characters(path: Path) -> frozenset[str]:
    """The characters with names that a font file covers."""
    return frozenset(
        character for code in FT2Font(str(path)).get_charmap() if unicodedata.name(character := chr(code), "")
    )
