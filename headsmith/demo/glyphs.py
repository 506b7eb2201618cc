"""The glyph set: a class is a character, a sample is that character in one of matplotlib's font faces.

Faces, not samples, are held out: training sees DejaVu faces only, the test split is the STIX family. Characters that
look alike (Latin A, Greek Alpha, Cyrillic A) stay apart as classes: they are the reason why top-5 exists.
"""

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
from matplotlib.ft2font import FT2Font
from PIL import Image, ImageDraw, ImageFont

from ..core.errors import InputError
from ..core.files import new_folder
from ..core.progress import progress

CANVAS, FONT_SIZE, BASELINE = 112, 64, 78
VAL_FACES = ("DejaVuSerif-Italic", "STIXGeneralBolIta")
TEST_FACES = ("STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic")
FAMILIES = ("DejaVuSans", "DejaVuSerif", "STIXGeneral")
LARGEST = 1000


def draw_glyphs(out: str | Path, classes: int) -> Path:
    """Draw the glyph set as folders ``train/``, ``val/`` and ``test/`` of class folders, one PNG a face.

    Args:
        out: The folder to make; one that exists is taken as it is.
        classes: How many characters, at most 1000.

    Returns:
        ``out``.

    Raises:
        InputError: ``classes`` is out of range.
    """
    out = Path(out)
    if not 5 <= classes <= LARGEST:
        raise InputError(f"classes: {classes} found, expected 5 to {LARGEST}")
    if out.is_dir():
        return out
    faces = find_faces()
    characters = choose_characters(faces, classes)
    with new_folder(out) as folder, progress("Drawing glyphs", len(faces), "faces") as advance:
        for name, (path, covered) in faces.items():
            font = ImageFont.truetype(path, FONT_SIZE)
            for character in characters:
                if character in covered:
                    target = folder / split_of(name) / class_name(character) / f"{name}.png"
                    target.parent.mkdir(parents=True, exist_ok=True)
                    draw(character, font).save(target)
            advance(1)
    return out


def find_faces() -> dict[str, tuple[Path, set[str]]]:
    """The text faces that matplotlib ships: name to font file and the characters it covers."""
    folder = Path(mpl.get_data_path(), "fonts", "ttf")
    paths = [path for path in sorted(folder.glob("*.ttf")) if path.stem.startswith(FAMILIES)]
    return {path.stem: (path, {chr(code) for code in FT2Font(str(path)).get_charmap()}) for path in _text(paths)}


def _text(paths: list[Path]) -> Iterator[Path]:
    """Leave out the display faces, which cover a handful of characters."""
    return (path for path in paths if "Display" not in path.stem)


def choose_characters(faces: dict[str, tuple[Path, set[str]]], classes: int) -> list[str]:
    """Letters, digits, punctuation and symbols that every DejaVu face has, those in most STIX faces first."""
    covered = [characters for name, (_, characters) in faces.items() if name.startswith("DejaVu")]
    visible = [c for c in set.intersection(*covered) if unicodedata.category(c)[0] in "LNPS"]
    visible.sort(key=lambda c: (-sum(c in characters for _, characters in faces.values()), c))
    return visible[:classes]


def split_of(face: str) -> str:
    """The split that a face belongs to."""
    if face in TEST_FACES:
        return "test"
    return "val" if face in VAL_FACES else "train"


def class_name(character: str) -> str:
    """A folder name that every file system takes, such as ``U+0041 LATIN CAPITAL LETTER A``."""
    return f"U+{ord(character):04X} {unicodedata.name(character)}"


def character_of(class_name: str) -> str:
    """The character that a class name stands for."""
    return chr(int(class_name.split(" ", maxsplit=1)[0].removeprefix("U+"), 16))


def draw(character: str, font: ImageFont.FreeTypeFont) -> Image.Image:
    """Black on white, on a fixed baseline, so that case and height stay visible."""
    image = Image.new("L", (CANVAS, CANVAS), 255)
    ImageDraw.Draw(image).text((CANVAS / 2, BASELINE), character, fill=0, font=font, anchor="ms")
    return image
