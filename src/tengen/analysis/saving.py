"""Pictures, JSON and search trees as files: SVG as it is, PNG through resvg."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tengen import files
from tengen.errors import TengenError
from tengen.search import dump
from tengen.search.tree import Tree

ENDINGS = (".svg", ".png")
_SCALE = 2.0  # pixels of a PNG for each of the SVG's, so that it is sharp on today's screens
_ALL = 1 << 30  # deeper than any tree
_DEEPEST = 10_000  # calls into each other


def check_picture(path: Path | None) -> None:
    """TengenError if no picture can be written there, to be known before the work and not after it."""
    if path is None:
        return
    if path.suffix.lower() not in ENDINGS:
        raise TengenError(f"{path}: pictures are SVG or PNG; expected a name that ends in {' or '.join(ENDINGS)}")
    if path.suffix.lower() == ".png":
        _renderer()


def check_folder(path: Path | str | None) -> None:
    """TengenError if there is no such folder to write into; `-` is standard output."""
    folder = None if path is None or path == "-" else Path(path).absolute().parent
    if folder is not None and not folder.is_dir():
        raise TengenError(f"{path}: there is no folder {folder}; make it first")


def save_picture(path: Path, svg: str) -> None:
    """Write the picture as SVG or PNG, by the name's ending. TengenError if it cannot be written."""
    check_picture(path)
    files.write_bytes(path, to_png(svg) if path.suffix.lower() == ".png" else svg.encode())


def save_json(path: Path | str, data: Any) -> None:
    """Write the data; `-` is standard output."""
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
    else:
        files.write_bytes(Path(path), text.encode())


def save_tree(path: Path, tree: Tree) -> None:
    """Write a whole search tree: indented text if the name ends in .txt, else JSON."""
    with _deep():
        if path.suffix.lower() == ".txt":
            files.write_bytes(path, (dump.as_text(tree, depth=_ALL) + "\n").encode())
        else:
            files.write_bytes(path, (json.dumps(dump.as_dict(tree, depth=_ALL)) + "\n").encode())


@contextlib.contextmanager
def _deep() -> Iterator[None]:
    """Room for recursion into trees whose main line is hundreds of moves long."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def to_png(svg: str) -> bytes:
    """The picture as PNG, twice as many pixels wide and high."""
    renderer, fonts = _renderer()
    return renderer.svg_to_bytes(svg_string=svg, zoom=_SCALE, font_files=fonts, sans_serif_family="Roboto")


def _renderer() -> tuple[Any, list[str]]:
    """resvg, and files of a font: many servers have none, and all letters would be missing."""
    try:
        import font_roboto
        import resvg_py
    except ImportError:
        words = "PNG pictures need two more libraries: pip install 'tengen-zero[pictures]', or ask for .svg"
        raise TengenError(words) from None
    return resvg_py, [font_roboto.font_files[name] for name in ("Roboto", "RobotoBold")]
