"""A row of unseen glyphs with the five best characters and scores of both heads."""

import random
import textwrap
import unicodedata
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from PIL import Image

from ..core.files import new_file
from ..evaluate import Prediction, predict
from ..export import Bundle
from .glyphs import character_of

COLUMNS, SEED, WIDTH = 8, 0, 22
RIGHT, WRONG = "#2a7f3f", "#b9c0c8"


def draw_picture(first: Bundle, second: Bundle, test: Path, out: Path) -> Path:
    """Write a PNG: glyphs in the upper row, below them the top-5 of the first and of the second head.

    Args:
        first: The bundle of the upper predictions.
        second: The bundle of the lower predictions.
        test: Folder of class folders of unseen glyphs; a fixed random choice is taken.
        out: The PNG to write.

    Returns:
        ``out``.
    """
    glyphs = random.Random(SEED).sample(sorted(test.glob("*/*.png")), COLUMNS)  # noqa: S311 - a choice, not a secret
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 9}):
        figure = Figure(figsize=(1.6 * COLUMNS, 6.2), layout="constrained")
        figure.suptitle("Characters in typefaces that neither head saw, and the five best answers of both", fontsize=11)
        axes = figure.subplots(3, COLUMNS, height_ratios=(1.3, 1, 1))
        for column, path in enumerate(glyphs):
            _show_glyph(axes[0, column], path)
        for row, bundle in ((1, first), (2, second)):
            for column, prediction in enumerate(predict(bundle, glyphs)):
                _show_scores(axes[row, column], prediction, truth=glyphs[column].parent.name)
            axes[row, 0].set_ylabel(bundle.manifest.training["loss"])
        right, other = Patch(color=RIGHT, label="the right character"), Patch(color=WRONG, label="another character")
        key = "Length of a bar: the probability that the head gives to the character beside it"
        figure.legend(handles=[right, other], title=key, loc="outside lower center", ncols=2, frameon=False)
        with new_file(out) as temporary:
            figure.savefig(temporary, dpi=110, format="png")
    return out


def _show_glyph(axes: Axes, path: Path) -> None:
    with Image.open(path) as image:
        axes.imshow(image, cmap="gray")
    name = unicodedata.name(character_of(path.parent.name))
    axes.set_title(f"{textwrap.fill(name, WIDTH)}\n({path.stem})", fontsize=6.5)
    axes.set_axis_off()


def _show_scores(axes: Axes, prediction: Prediction, truth: str) -> None:
    """Bars of the scores, the best on top, the right character in green."""
    colors = [RIGHT if label == truth else WRONG for label in prediction.labels]
    positions = range(len(prediction.labels))
    axes.barh(positions, prediction.scores, color=colors)
    axes.set_yticks(positions, [character_of(label) for label in prediction.labels])
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0", ".5", "1"], fontsize=7)
    axes.spines[["top", "right"]].set_visible(False)
