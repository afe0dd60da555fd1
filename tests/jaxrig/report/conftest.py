"""A reader for pages, so that tests see what a browser would build."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

import pytest

VOID = {"meta", "img", "input", "link"}


@dataclass
class Node:
    """An element with its attributes, children and text."""

    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list["Node"] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def all(self, *tags: str) -> list["Node"]:
        found = [self] if self.tag in tags or not tags else []
        return found + [node for child in self.children for node in child.all(*tags)]

    def one(self, tag: str) -> "Node":
        (node,) = self.all(tag)
        return node

    def having(self, name: str, value: str | None = None) -> list["Node"]:
        return [
            node
            for node in self.all()
            if name in node.attributes and value in (None, node.attributes[name])
        ]

    @property
    def text(self) -> str:
        return "".join(self.words)


class Reader(HTMLParser):
    """Builds nodes and refuses tags that do not match."""

    def __init__(self):
        super().__init__()
        self.root = Node("")
        self.open = [self.root]

    def handle_starttag(self, tag, attrs):
        node = Node(tag, dict(attrs))
        assert len(node.attributes) == len(attrs), f"<{tag}> repeats an attribute"
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop().tag == tag

    def handle_data(self, data):
        for node in self.open:
            node.words.append(data)


def read(page: str) -> Node:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == [reader.root], "an element is left open"
    return reader.root


@pytest.fixture(scope="session")
def parse():
    return read
