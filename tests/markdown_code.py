"""Code blocks of a Markdown page, and what each of their lines is."""

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

# Lines that no test runs, by how they begin, and why.
NOT_RUN = {
    "make ": "each is a step of continuous integration, which runs this test; that the target exists is tested",
    ".ci/run": "it runs this test; that it exists is tested",
    "headsmith demo": "half a minute; tests/cli/test_end_to_end.py runs a quick one",
    "headsmith finetune photos --start runs/photos": "not with the stand-in for lite0; see tests/trainer/finetuning",
    "headsmith export runs/whole": "see tests/export/test_export_of_tuned_runs.py",
    "headsmith extract photos --backbone runs/whole": "see tests/trainer/finetuning",
    "headsmith benchmark": "minutes; tests/evaluate/benchmark runs a small one",
    "headsmith verify bundles/photos --data photos --provider cuda": "needs a GPU; tests/export/parity has the rest",
    "headsmith evaluate bundles/photos --data photos/test --provider cpu cuda": "needs a GPU; so test_openvino.py",
}


class Block(NamedTuple):
    """A code block: ``kind`` is the language after its fence, empty for an indented block."""

    page: str
    line: int
    kind: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_shown_output(self) -> bool:
        """A table with drawn borders is what a command prints, and so is a block that is called text."""
        return self.kind == "text" or (not self.kind and "━━" in self.text)

    @property
    def lines(self) -> list[str]:
        """Commands without their comments."""
        return [re.sub(r"\s+#.*", "", line) for line in self.text.splitlines()]


def outputs(code: str) -> set[str]:
    """The folders and files that a command or a piece of Python makes."""
    return {name for pair in re.findall(r'--out (\S+)|\bout="([^"]+)"', code) for name in pair if name}


def reason_not_run(line: str) -> str | None:
    return next((reason for start, reason in NOT_RUN.items() if line.startswith(start)), None)


def _tokens(path: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8"))


def blocks(path: Path) -> list[Block]:
    return [
        Block(path.name, token.map[0] + 1, token.info.strip(), token.content)
        for token in _tokens(path)
        if token.type in ("fence", "code_block")
    ]


def spans(path: Path) -> list[str]:
    """The code between backticks, in text and tables."""
    inline = (child for token in _tokens(path) for child in token.children or ())
    return [child.content for child in inline if child.type == "code_inline"]


def links(path: Path) -> list[str]:
    """Where links and pictures of a page lead, but for addresses."""
    inline = (child for token in _tokens(path) for child in token.children or ())
    found = (child.attrGet("href") or child.attrGet("src") for child in inline)
    return [str(link) for link in found if link and "://" not in str(link)]


def anchors(path: Path) -> set[str]:
    """What a link to a heading of the page is called, as GitHub does it."""
    tokens = _tokens(path)
    headings = [inline.content for opened, inline in pairwise(tokens) if opened.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(path: Path) -> list[list[str]]:
    """Every line of code and every span that calls headsmith, in words."""
    lines = [line for block in blocks(path) if not block.kind for line in block.lines] + spans(path)
    called = [re.search(r"(?:^|-m )headsmith (.*)", line) for line in lines]
    return [shlex.split(found[1]) for found in called if found]
