"""Which epoch is kept, and when a head stops."""

import pytest

from headsmith.trainer.fitting.selection import Selection


def ended(scores, losses, patience):
    """The best epoch, and the last that was taken."""
    selection = Selection([patience])
    for epoch, (score, loss) in enumerate(zip(scores, losses, strict=True), 1):
        val = {"score": score, "top1": score, "top5": None, "loss": loss}
        selection.add(0, {"epoch": epoch, "loss": 1.0, "seconds": 0.0, "val": val})
        if not selection.active[0]:
            break
    return selection.best[0]["epoch"], epoch


@pytest.mark.parametrize(
    ("scores", "losses", "expected"),
    [
        ([0.5, 0.4, 0.4, 0.4, 0.9], [1.0, 1.1, 1.2, 1.3, 0.5], (1, 4)),  # neither: patience ends it
        ([0.7, 0.3, 0.2, 0.2, 0.9], [3.0, 2.5, 2.0, 1.5, 1.0], (5, 5)),  # through a valley while the loss falls
        ([0.5, 0.6, 0.7, 0.8, 0.9], [1.0, 1.1, 1.2, 1.3, 1.4], (5, 5)),  # a higher score is enough
        ([0.5, 0.5, 0.5, 0.5, 0.5], [1.0, 0.9999, 0.9998, 0.9997, 0.9], (4, 4)),  # less than a thousandth
        ([1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 0.5, 0.2, 0.1, 0.05], (4, 4)),  # nothing left to learn
    ],
)
def test_patience_waits_for_a_higher_score_or_a_lower_loss(scores, losses, expected):
    assert ended(scores, losses, patience=3) == expected


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_validation_loss_that_is_not_finite_ends_a_head_and_is_never_its_best(loss):
    assert ended([0.5, 0.9, 1.0], [1.0, loss, 0.5], patience=3) == (1, 2)


def test_the_state_goes_on():
    first, second = Selection([2]), Selection([2])
    row = {"epoch": 1, "loss": 1.0, "seconds": 0.0, "val": {"score": 0.5, "top1": 0.5, "top5": None, "loss": 1.0}}
    first.add(0, row)
    second.restore(first.state())
    for epoch in (2, 3):
        for selection in (first, second):
            selection.add(0, row | {"epoch": epoch})
    assert first.state() == second.state()
    assert first.active == [False]
