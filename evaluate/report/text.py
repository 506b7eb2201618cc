"""Figures and names as text."""

import re

from markupsafe import Markup, escape


def percent(share: float | None) -> str:
    """A share in per cent, with one decimal; empty for what has no value."""
    return "" if share is None else f"{100 * share:.1f}"


def points(difference: float) -> str:
    """A difference of shares in points, with its sign."""
    text = f"{100 * difference:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def p_value(p: float) -> str:
    """A p-value as papers write it."""
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".")


def breakable(name: str) -> Markup:
    """A name, escaped, that a browser may break after ``_``, ``.``, ``/`` and ``:``."""
    return Markup(re.sub(r"(?<=[_./:])(?=\w)", "<wbr>", escape(name)))  # noqa: S704 - escaped
