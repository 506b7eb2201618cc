"""What is right by chance: the one definition for features, training, sweeps and evaluations."""

import math
from bisect import bisect_left
from typing import Any

import numpy as np
from scipy.special import bdtrc

Array = np.ndarray[Any, Any]
# Answers whose hits guessing would reach so often cannot be told from guesses.
LEVEL = 0.01


def chance(named: Array, judged: Array) -> float:
    """The share of rows that answers have right by chance: the same answers in random order.

    Args:
        named: ``(M,)`` integers, the classes that are answered, each as often as here.
        judged: ``(N,)`` integers, the right classes; at least one.

    Returns:
        The sum over classes of the share of answers that name it times the share of rows that it is right for.
    """
    classes = 1 + int(max(named.max(), judged.max()))
    often = [np.bincount(labels, minlength=classes) / len(labels) for labels in (named, judged)]
    return min(1.0, float(often[0] @ often[1]))


def commonest(labels: Array) -> Array:
    """The best answer of somebody who knows how frequent the classes are, and sees no row.

    Args:
        labels: ``(N,)`` integers; at least one.

    Returns:
        The most frequent class, or all that are equally frequent.
    """
    counts = np.bincount(labels)
    found: Array = np.flatnonzero(counts == counts.max())
    return found


def largest_share(sets: Array) -> float:
    """The share of rows that naming always one class has right at most.

    Args:
        sets: ``(N, L)`` integers, the right classes of each row, -1 where it has fewer than L; at least one row.
    """
    rows = np.sort(sets, axis=1)
    once = rows[:, :1].ravel(), rows[:, 1:][rows[:, 1:] != rows[:, :-1]]  # a class counts once a row
    labels = np.concatenate(once)
    return float(np.bincount(labels[labels >= 0]).max(initial=0) / len(sets))


def guessing_p(hits: int, n: int, chance: float) -> float:
    """How often guesses have so many hits or more: the binomial tail."""
    return float(bdtrc(hits - 1, n, chance)) if hits else 1.0


def like_guesses(hits: int, n: int, chance: float) -> bool:
    """Whether answers with so many hits on n rows cannot be told from guesses."""
    return guessing_p(hits, n, chance) >= LEVEL


def fewest_hits(n: int, chance: float) -> int | None:
    """The fewest hits on n rows that can be told from guesses; nothing where not even n can."""
    if like_guesses(n, n, chance):
        return None
    return bisect_left(range(n + 1), True, key=lambda hits: not like_guesses(hits, n, chance))


def fewest_rows(chance: float) -> int | None:
    """The fewest rows that, all right, can be told from guesses; nothing where guesses are always right."""
    return None if chance >= 1 else max(1, math.floor(math.log(LEVEL) / math.log(chance)) + 1) if chance > 0 else 1
