"""HTML as elements, by the parser of the standard library."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "img", "wbr", "br"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    children: list["Element | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, tag: str, **attributes: str) -> list["Element"]:
        """Elements below this one, in order; ``_class`` stands for ``class``."""
        wanted = {name.lstrip("_"): value for name, value in attributes.items()}
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if child.tag == tag and wanted.items() <= child.attributes.items():
                    found.append(child)
                found += child.all(tag, **attributes)
        return found

    def one(self, tag: str, **attributes: str) -> "Element":
        (found,) = self.all(tag, **attributes)
        return found

    def rows(self) -> list[list[str]]:
        """The body of a table as text."""
        body = self.one("tbody")
        return [
            [" ".join(cell.text.split()) for cell in row.children if isinstance(cell, Element)]
            for row in body.all("tr")
        ]


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("", {})]

    def handle_starttag(self, tag, attrs):
        element = Element(tag, {name: value or "" for name, value in attrs})
        assert len(element.attributes) == len(attrs), f"an attribute of {tag} stands twice"
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag):
        assert self.open.pop().tag == tag, f"</{tag}> closes something else, line {self.getpos()[0]}"

    def handle_data(self, data):
        self.open[-1].children.append(data)


def parse(text: str) -> Element:
    """The root of a page whose elements are all closed in order."""
    builder = _Builder()
    builder.feed(text)
    builder.close()
    assert len(builder.open) == 1, f"{builder.open[-1].tag} is not closed"
    return builder.open[0]
