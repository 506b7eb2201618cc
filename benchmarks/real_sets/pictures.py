"""Pictures of classes, drawn or rendered into class folders, and their features by `headsmith.extract`."""

import gzip
import io
import re
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from headsmith import extract
from headsmith.core.progress import progress

from .splits import Item, Splits, without_copies

CANVAS, EDGE = 112, 92
Draw = Callable[[Item], Image.Image | None]


def pictures_to_features(splits: Splits, draw: Draw, out: Path, *, size: int) -> None:
    """Draw all items and extract the features of lite0.

    Args:
        splits: What to draw. Copies of pictures of an earlier split are left out.
        draw: Gives an RGB or grey picture of `CANVAS` pixels, or None where there is nothing to see.
        out: A folder, for ``pictures/`` and ``features/``.
        size: Pixels of the network's input, along an edge.
    """
    folder, drawn = out / "pictures", {}
    with progress("Drawing", sum(map(len, splits.values())), "pictures") as advance:
        for item in (item for rows in splits.values() for item in rows):
            picture = draw(item)
            if picture is not None and _ink(picture):
                drawn[item.label, item.source, item.name] = picture
            advance(1)
    seen = {
        split: [item for item in rows if (item.label, item.source, item.name) in drawn]
        for split, rows in splits.items()
    }
    seen = without_copies(seen, lambda item: drawn[item.label, item.source, item.name].tobytes())
    labels = set.intersection(*({item.label for item in rows} for rows in seen.values()))
    for split, rows in seen.items():
        for item in rows:
            if item.label in labels:
                target = (
                    folder / split / item.label / (re.sub(r"[^\w.@-]+", "_", f"{item.source}.{item.name}") + ".png")
                )
                target.parent.mkdir(parents=True, exist_ok=True)
                drawn[item.label, item.source, item.name].save(target, compress_level=1)
    extract(folder, backbone="lite0", image_size=size, out=out / "features", batch_size=128)


def _ink(picture: Image.Image) -> bool:
    low, high = picture.convert("L").getextrema()
    return high - low >= 24  # type: ignore[operator]  # of one band: two numbers


def rendered(content: bytes, kind: str) -> Image.Image | None:
    """An icon on a white canvas, `EDGE` pixels along its longer edge; None where its file cannot be read.

    Args:
        content: The file.
        kind: ``png``, ``svg`` or ``svgz``.
    """
    import resvg_py  # of the extra `sets`, which tests of splits do not need

    try:
        if kind != "png":
            text = (gzip.decompress(content) if kind == "svgz" else content).decode("utf-8")
            content = resvg_py.svg_to_bytes(svg_string=text, width=2 * EDGE, skip_system_fonts=True)
        with Image.open(io.BytesIO(bytes(content))) as image:
            icon = image.convert("RGBA")
    except (ValueError, OSError, SyntaxError):  # broken files of old themes
        return None
    scale = EDGE / max(icon.size)
    icon = icon.resize([max(1, round(edge * scale)) for edge in icon.size], Image.Resampling.LANCZOS)
    canvas = Image.new("RGB", (CANVAS, CANVAS), "white")
    canvas.paste(icon, [(CANVAS - edge) // 2 for edge in icon.size], icon)
    return canvas
