"""The text of SGF files: games as trees of nodes.

Files are sloppy, so text around the games, lower case letters in names (FF[3]) and repeated properties are accepted.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Self

from tengen.data.records.records import MOST_VARIATIONS, RecordError, shorten, without_mark

Node = dict[str, list[str]]
"""Property -> its values, unescaped but for what depends on their type."""

BEGIN = re.compile(r"\(\s*;")
_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[A-Za-z]{1,40}")
_VALUE = re.compile(r"\[([^\]\\]*(?:\\.[^\]\\]*)*)\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(\r\n|\n\r|.)", re.DOTALL)


@dataclass
class SgfTree:
    """One game: its nodes in the order of the file, the node before each (-1: none), and those that end a line."""

    nodes: list[Node] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    @classmethod
    def read(cls, text: str, place: int) -> tuple[Self, int]:
        """The game that begins at `place`, and where it ends. RecordError if it is not complete."""
        tree = cls()
        last = [-1]  # for each open bracket: its newest node
        ended = [False]  # ... and whether a variation in it has been closed
        node: Node = {}  # the one that properties belong to, which is not kept after a variation
        place += 1
        while True:
            place = _skip(text, place)
            sign = text[place : place + 1]
            if sign == "(":
                last.append(last[-1])
                ended.append(False)
                place += 1
            elif sign == ")":
                end = last.pop()
                if not ended.pop():
                    tree.ends.append(end)
                place += 1
                if not last:
                    return tree, place
                ended[-1] = True
            elif sign == ";":
                node = {}
                if not ended[-1]:
                    tree.nodes.append(node)
                    tree.before.append(last[-1])
                    last[-1] = len(tree.nodes) - 1
                place += 1
            elif not sign:
                raise RecordError(f"line {_line_number(text, place)}: the text ends inside a game; it may be cut short")
            else:
                place = _property(text, place, node)

    @property
    def main_line(self) -> list[Node]:
        """The nodes of the first variation at every branch."""
        return self._line(self.ends[0])

    def variations(self) -> Iterator[list[Node]]:
        """The nodes of the other lines, each from the start of the game; at most MOST_VARIATIONS of them."""
        return (self._line(end) for end in islice(self.ends, 1, 1 + MOST_VARIATIONS))

    def _line(self, end: int) -> list[Node]:
        found = []
        while end >= 0:
            found.append(self.nodes[end])
            end = self.before[end]
        return found[::-1]


def decode(content: bytes | str) -> str:
    """The text of a file, in the encoding that it names, or in the first one that fits."""
    if isinstance(content, str):
        return content
    content = without_mark(content)
    named = re.search(rb"CA\s*\[\s*([A-Za-z0-9_.:-]{1,40})\s*\]", content[:4000])
    wanted = named[1].decode("ascii") if named else "utf-8"
    for encoding in (wanted, "utf-8"):
        try:
            if b"(;)".decode(encoding) == "(;)":  # else the name could not have been read as it was
                return content.decode(encoding)
        except (LookupError, UnicodeError, ValueError):
            continue
    return content.decode("latin-1")  # what SGF means if nothing is said, and every byte is something in it


def trees(text: str) -> list[SgfTree]:
    """The games in a text. RecordError if there is no game, or half a one."""
    games = []
    place = 0
    while begin := BEGIN.search(text, place):
        tree, place = SgfTree.read(text, begin.start())
        games.append(tree)
    if not games:
        raise RecordError("it contains no game: expected SGF, which begins with (;")
    return games


def unescape(value: str) -> str:
    """A text as its writer meant it: \\] is ], and a line that ends in \\ goes on."""
    return _ESCAPE.sub(lambda match: "" if match[1][0] in "\r\n" else match[1], value)


def _property(text: str, place: int, node: Node) -> int:
    """Add the property at `place` to the node; give the place after it."""
    name = _NAME.match(text, place)
    if name is None:
        raise RecordError(
            f"line {_line_number(text, place)}: expected a property, got {shorten(text[place : place + 20])}"
        )
    key = "".join(letter for letter in name[0] if letter.isupper()) or name[0].upper()
    place = _skip(text, name.end())
    values = node.setdefault(key, [])
    if text[place : place + 1] != "[":
        raise RecordError(f"line {_line_number(text, place)}: {name[0]}: expected a value in [ ]")
    while text[place : place + 1] == "[":
        value = _VALUE.match(text, place)
        if value is None:
            raise RecordError(
                f"line {_line_number(text, place)}: {name[0]}: there is no ] after this; the text may be cut short"
            )
        values.append(value[1])
        place = _skip(text, value.end())
    return place


def _skip(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return place if space is None else space.end()


def _line_number(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
