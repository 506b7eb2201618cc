"""Code blocks of a Markdown page, and what each of their lines is."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

# Lines that no test runs, by how they begin, and why.
NOT_RUN = {
    "make ": "each is a step of continuous integration, which runs this test; that the target exists is tested",
    ".ci/run": "it runs this test; that it exists is tested",
    "headsmith demo": "half a minute; tests/cli/test_end_to_end.py runs a quick one",
    "headsmith verify bundles/photos --data photos --provider cuda": "needs a GPU; tests/export/proof has the rest",
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
        """A table with drawn borders is what a command prints."""
        return not self.kind and "━━" in self.text

    @property
    def lines(self) -> list[str]:
        """Commands without their comments."""
        return [re.sub(r"\s+#.*", "", line) for line in self.text.splitlines()]

    @property
    def outputs(self) -> set[str]:
        """The folders and files that the block makes."""
        return {name for pair in re.findall(r'--out (\S+)|\bout="([^"]+)"', self.text) for name in pair if name}


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


def commands(path: Path) -> list[list[str]]:
    """Every line of code and every span that calls headsmith, in words."""
    lines = [line for block in blocks(path) if not block.kind for line in block.lines] + spans(path)
    called = [re.search(r"(?:^|-m )headsmith (.*)", line) for line in lines]
    return [shlex.split(found[1]) for found in called if found]
