"""The whole tree of a search as a file."""

import json
from pathlib import Path

from tengen.play.looking.saving import save_bytes
from tengen.search import Tree, dump

_ALL = 1 << 30  # deeper than any tree


def save(path: Path, tree: Tree) -> None:
    """Every position that the search looked at: indented text if the name ends in .txt, else JSON."""
    if path.suffix.lower() == ".txt":
        save_bytes(path, (dump.as_text(tree, depth=_ALL) + "\n").encode())
    else:
        save_bytes(path, (json.dumps(dump.as_dict(tree, depth=_ALL)) + "\n").encode())
