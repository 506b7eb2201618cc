"""A page for people, from a folder of results."""

from .report import write_report

__all__ = ["write_report"]
