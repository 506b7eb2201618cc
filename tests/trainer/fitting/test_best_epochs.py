"""Which epoch is kept, and when a head stops."""

from dataclasses import replace

import pytest

from headsmith.core.errors import DamagedFileError
from headsmith.trainer.fitting.best_epochs import Selection
from headsmith.trainer.scores import EpochScores, SplitScores


def ended(scores, losses, patience):
    """The best epoch, and the last that was taken."""
    selection = Selection([patience])
    for epoch, (score, loss) in enumerate(zip(scores, losses, strict=True), 1):
        selection.add(0, EpochScores(epoch, 1.0, 0.0, SplitScores(10, loss, score, None, score)))
        if not selection.active[0]:
            break
    return selection.best[0].epoch, epoch


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


def goes_on(first, state):
    second = Selection([2])
    second.restore(state, "checkpoint.pt", "start anew")
    for epoch in (2, 3):
        for selection in (first, second):
            selection.add(0, replace(EPOCH, epoch=epoch))
    assert first.state() == second.state()
    assert first.active == [False]


EPOCH = EpochScores(1, 1.0, 0.0, SplitScores(10, 1.0, 0.5, None, 0.5))


def test_the_state_goes_on():
    first = Selection([2])
    first.add(0, EPOCH)
    goes_on(first, first.state())


def test_the_state_of_the_version_before_goes_on():
    val = {"n": 10, "loss": 1.0, "top1": 0.5, "top5": None, "score": 0.5}
    row = {"epoch": 1, "loss": 1.0, "seconds": 0.0, "val": val}
    first = Selection([2])
    first.add(0, EPOCH)
    goes_on(first, first.state() | {"histories": [[row]], "best": [row]})
    nothing = first.state() | {"histories": [[]], "best": [{}], "moved": [0], "active": [True]}
    again = Selection([2])
    again.restore(nothing, "checkpoint.pt", "start anew")
    assert again.best == [None]


def test_a_state_of_other_epochs_is_told():
    with pytest.raises(DamagedFileError, match=r"checkpoint.pt: .*loss: missing, expected a number; start anew"):
        Selection([2]).restore(Selection([2]).state() | {"histories": [[{"epoch": 1}]]}, "checkpoint.pt", "start anew")
