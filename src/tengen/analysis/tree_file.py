"""The whole tree of a search as a file."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tengen.analysis.saving import save_bytes
from tengen.search import dump
from tengen.search.tree import Tree

_ALL = 1 << 30  # deeper than any tree
_DEEPEST = 10_000  # calls into each other


@contextlib.contextmanager
def _deep() -> Iterator[None]:
    """Room for recursion into trees whose main line is hundreds of moves long."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def save(path: Path, tree: Tree) -> None:
    """Every position that the search looked at: indented text if the name ends in .txt, else JSON."""
    with _deep():
        if path.suffix.lower() == ".txt":
            save_bytes(path, (dump.as_text(tree, depth=_ALL) + "\n").encode())
        else:
            save_bytes(path, (json.dumps(dump.as_dict(tree, depth=_ALL)) + "\n").encode())
