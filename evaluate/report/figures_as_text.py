"""Figures and names as text."""

import re
from typing import Any

from markupsafe import Markup, escape

from ...core.printable import printable


def visible(value: Any) -> Any:
    """What the page writes: text of files with its control characters made visible; the page's own HTML stays."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


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
    """A name, escaped and its control characters visible, that may be broken after ``_``, ``.``, ``/`` and ``:``."""
    return Markup(re.sub(r"(?<=[_./:])(?=\w)", "<wbr>", escape(printable(name))))  # noqa: S704 - escaped
