"""Reads a page as a browser would, as far as tests ask: elements, texts, links. Knows nothing of what is on it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple

__all__ = ["Element", "Reading", "read_page"]

_VOID = frozenset({"br", "meta"})


class Element(NamedTuple):
    """One element: its tag, its attributes, and the text in it."""

    tag: str
    attributes: dict[str, str]
    texts: list[str]

    @property
    def classes(self) -> set[str]:
        """Its class names."""
        return set(self.attributes.get("class", "").split())

    @property
    def text(self) -> str:
        """All text below it."""
        return "".join(self.texts)


class Reading(HTMLParser):
    """A page that was read; every element must end where it should.

    `elements` has all of them in the order of their beginnings.
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in the beginning of an element."""
        element = Element(tag, {name: value or "" for name, value in attrs}, [])
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        """Take in its end."""
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        """Take in text."""
        for element in self._open:
            element.texts.append(data)

    def list_elements(self, tag: str, name: str = "") -> list[Element]:
        """List the elements with a tag and a class."""
        return [element for element in self.elements if element.tag == tag and (not name or name in element.classes)]

    def list_rows(self) -> list[tuple[Element, list[Element]]]:
        """List the rows of the diagram, each with what is drawn in it."""
        found: list[tuple[Element, list[Element]]] = []
        for element in self.elements:
            if element.tag == "tr" and element.attributes.get("id", "").startswith("r"):
                found.append((element, []))
            elif element.tag == "i" and found:
                found[-1][1].append(element)
        return found


def read_page(html: str) -> Reading:
    """Read a page."""
    return Reading(html)
