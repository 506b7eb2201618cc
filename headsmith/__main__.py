"""``python -m headsmith``."""

from .cli import app

app(prog_name="headsmith")
