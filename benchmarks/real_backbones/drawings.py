"""Drawings of Debian's clip art by what they show, with artists held out."""

import io
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

from PIL import Image, ImageChops

from headsmith.core.files import new_folder

from ..real_sets.registries import members
from ..real_sets.splits import Item, by_group, thinned, without_copies

PACKAGE = "openclipart-svg"
CANVAS, EDGE, RENDERED, DPI = 256, 224, 640, 90  # 90 is what Sodipodi meant by an inch
HELD_OUT, MOST = 0.3, {"train": 60, "val": 30, "test": 40}
# Classes with the folders of the package; those with the same kinds of things are one.
FOLDERS = {
    "bird": ["animals/birds"], "bug": ["animals/bugs"], "fish": ["animals/fish"], "mammal": ["animals/mammals"],
    "beverage": ["food/beverages"], "bread": ["food/breads_and_carbs"], "dessert": ["food/desserts"],
    "fruit": ["food/fruit", "food/vegetables"], "meat": ["food/meats_and_eggs"],
    "flower": ["plants/flowers"], "people": ["people"], "bodypart": ["people/bodypart"],
    "clothing": ["people/clothing"], "smiley": ["people/smilies"], "music": ["recreation/music"],
    "party": ["recreation/party"], "sport": ["recreation/sports"], "toy": ["recreation/toys"],
    "building": ["buildings/homes"], "clock": ["signs_and_symbols/clocks"], "weather": ["signs_and_symbols/weather"],
    "flag": [f"signs_and_symbols/flags/{place}" for place in ("africa", "america", "asia", "europe", "oceania")],
    "hardware": ["computer/hardware"], "office": ["office"], "tool": ["tools"], "weapon": ["tools/weapons"],
    "vehicle": ["transportation/vehicles"], "astronomy": ["geography/astronomy", "science/astronomy"],
}  # fmt: skip
_CLASS_OF = {folder: name for name, folders in FOLDERS.items() for folder in folders}
_FILE = re.compile(r"/openclipart/svg/.+\.svg$")
_CREATOR = "{http://purl.org/dc/elements/1.1/}creator"


def drawings(package: Path, out: Path) -> dict[str, int]:
    """Draw the set into class folders below ``train``, ``val`` and ``test``.

    Args:
        package: The file of `PACKAGE`.
        out: The folder; it is not there yet.

    Returns:
        How many drawings are in each split.
    """
    splits = by_group(_items(package), lambda item: item.source, held_out=HELD_OUT, least=2)
    drawn = {item: picture for rows in thinned(splits, MOST).values() for item in rows if (picture := drawn_of(item))}
    seen = {split: [item for item in rows if item in drawn] for split, rows in splits.items()}
    kept = without_copies(seen, lambda item: drawn[item].tobytes())
    labels = set.intersection(*({item.label for item in rows} for rows in kept.values()))
    with new_folder(out) as work:
        for split, rows in kept.items():
            for item in (item for item in rows if item.label in labels):
                target = work / split / item.label / (re.sub(r"[^\w.-]+", "_", f"{item.source}.{item.name}") + ".png")
                target.parent.mkdir(parents=True, exist_ok=True)
                drawn[item].save(target)
    return {split: sum(item.label in labels for item in rows) for split, rows in kept.items()}


def _items(package: Path) -> Iterator[Item]:
    for path, content in members(package, _FILE):
        name = PurePosixPath(path.split("/openclipart/svg/", 1)[1])
        label, artist = _CLASS_OF.get(str(name.parent)), artist_of(content)
        if label and artist:
            yield Item(label, artist, name.stem, content)


def artist_of(content: bytes) -> str:
    """The last word of the first creator that a drawing names, in lower case; empty where none is named.

    An artist signs in several ways (``Jean-Victor Balin (balin_j@...)``); a drawing without one could be anybody's.
    """
    try:
        creator = next(ElementTree.fromstring(content).iter(_CREATOR), None)  # noqa: S314 - of a pinned package
    except ElementTree.ParseError:
        return ""
    text = "" if creator is None else " ".join(creator.itertext())
    words = re.sub(r"\(.*?\)|\[.*?\]|<.*?>", " ", text).split()
    return words[-1].lower() if words else ""


def drawn_of(item: Item) -> Image.Image | None:
    """A drawing without the empty page around it, on a white square; None where there is nothing to see."""
    import resvg_py  # of the extra `sets`

    try:
        text = item.content.decode()
        drawn = bytes(resvg_py.svg_to_bytes(svg_string=text, width=RENDERED, dpi=DPI, skip_system_fonts=True))
        with Image.open(io.BytesIO(drawn)) as image:
            rendered = image.convert("RGBA")
    except (ValueError, OSError, UnicodeDecodeError):  # a few files are broken
        return None
    page = Image.new("RGBA", rendered.size, "white")
    page.alpha_composite(rendered)
    plain = page.convert("RGB")
    box = ImageChops.difference(plain, Image.new("RGB", plain.size, "white")).getbbox()
    if box is None:
        return None
    ink = plain.crop(box)
    scale = EDGE / max(ink.size)
    ink = ink.resize([max(1, round(edge * scale)) for edge in ink.size], Image.Resampling.LANCZOS)
    canvas = Image.new("RGB", (CANVAS, CANVAS), "white")
    canvas.paste(ink, [(CANVAS - edge) // 2 for edge in ink.size])
    return canvas
