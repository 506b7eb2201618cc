"""What the picture of a sweep shows, from rows that are made up; intervals are those of statsmodels."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image
from statsmodels.stats.proportion import proportion_confint

from headsmith.trainer.sweep import plot
from headsmith.trainer.sweep.plot import draw_sweep
from headsmith.trainer.sweep.tables import HeadRow

N = 200


def head(group, loss, rate, seed, right):
    score = None if right is None else 100 * right / N
    return HeadRow(
        index=0,
        group=group,
        settings={"loss": loss, "learning_rate": rate, "seed": seed},
        best_epoch=1,
        epochs_run=1,
        train_loss=1.0,
        val_n=N,
        val_loss=1.0,
        val_top1=score,
        val_top5=score,
        val_score=score,
        test_top1=None,
        test_top5=None,
        test_score=None,
        bank=0,
        bank_seconds=1.0,
        diverged=str(right is None).lower(),
    )


ROWS = [
    *(head("softmax", "softmax", rate, seed, 120 + 10 * seed) for rate in (0.001, 0.01) for seed in (0, 1)),
    head("_soft $x$", "softsort", 0.001, 0, 90),
    head("_soft $x$", "softsort", 0.01, 0, 150),
    head("_soft $x$", "softsort", 100.0, 0, None),
]


@pytest.fixture
def drawn(monkeypatch):
    """Draws, and gives the figure."""

    def draw(rows, axes, winner, path):
        made = []
        monkeypatch.setattr(plot, "Figure", lambda **options: made.append(Figure(**options)) or made[0])
        draw_sweep(rows, axes, "top1", winner, path)
        with Image.open(path) as image:
            assert image.size[0] >= 600
        return made[0]

    return draw


def test_title_winner_and_intervals(drawn, tmp_path):
    figure = drawn(ROWS, ["loss", "learning_rate", "seed"], 5, tmp_path / "sweep.png")
    low, high = proportion_confint(150, N, method="wilson")
    title = " ".join(figure.get_suptitle().split())
    assert title.startswith("Best of 7 heads by validation top1: _soft $x$ (loss softsort, learning_rate 0.01), 75.0 %")
    assert title.endswith(f"of {N} rows (95 % {100 * low:.1f} to {100 * high:.1f})")
    (panel,) = figure.axes
    assert panel.get_title() == "learning_rate"
    (star,) = [line for line in panel.lines if line.get_marker() == "*"]
    assert star.get_xydata().tolist() == [[0.01, 75.0]]
    ends = np.concatenate([bars.get_segments() for bars in panel.collections])[:, :, 1]
    expected = [proportion_confint(right, N, method="wilson") for right in (130, 130, 90, 150)]
    np.testing.assert_allclose(ends, 100 * np.array(expected))
    bottom, top = panel.get_ylim()
    assert bottom < ends.min() < ends.max() < top


def test_the_legend_names_the_winner_and_every_group(drawn, tmp_path):
    (legend,) = drawn(ROWS, ["loss", "learning_rate"], 5, tmp_path / "sweep.png").legends
    assert [text.get_text().strip() for text in legend.get_texts()] == ["winner", "softmax", "_soft $x$"]
    assert "95 % Wilson" in legend.get_title().get_text()
    assert len({to_hex(line.get_color()) for line in legend.get_lines()[1:]}) == 2


def test_where_only_the_groups_differ_they_are_the_panel(drawn, tmp_path):
    figure = drawn(ROWS[1:6:4], ["loss"], 1, tmp_path / "sweep.png")
    assert [panel.get_title() for panel in figure.axes] == ["loss"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["winner"]


def test_seeds_alone(drawn, tmp_path):
    figure = drawn(ROWS[:2], ["seed"], 1, tmp_path / "sweep.png")
    assert [panel.get_title() for panel in figure.axes] == ["seed"]


def test_control_characters_are_visible(drawn, tmp_path):
    row = head("a\u202eb", "softmax", 0.1, 0, 100)
    figure = drawn([row, ROWS[0]], ["learning_rate"], 0, tmp_path / "sweep.png")
    texts = [figure.get_suptitle(), *(text.get_text() for text in figure.legends[0].get_texts())]
    assert not any("\u202e" in text for text in texts)
    assert r"a\u202eb" in " ".join(texts)
