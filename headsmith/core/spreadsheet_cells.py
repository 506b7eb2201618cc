"""Texts in CSV files that people open in a spreadsheet, which takes some for formulas and runs them."""

from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cell(value: Any) -> Any:
    """A value for a CSV file: a text that a spreadsheet would take for a formula gets an apostrophe before it.

    Numbers stay, also those that are texts already; so that `text_of` gives any text back, one that begins with
    apostrophes and then such a character gets one more.
    """
    return f"'{value}" if isinstance(value, str) and _is_formula(value) else value


def text_of(cell: str) -> str:
    """The text of a cell that `cell` wrote."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(text: str) -> bool:
    if not text.lstrip("'").startswith(FORMULA):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False
