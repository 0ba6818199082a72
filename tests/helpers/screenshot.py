"""The picture in the documentation: `.venv/bin/python -m tests.helpers.screenshot docs/images/tui.svg`.

Textual's picture loads its font from the web and pads with blanks, which some viewers drop, along with the lengths
of texts. `self_contained` makes one that looks the same in all of them: every word stands at its own place, in a
monospaced font that the system has, and says by itself what it looks like.
"""

import asyncio
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

from rich.cells import cell_len

from tengen.monitor.dashboard.app import Dashboard
from tengen.monitor.dashboard.model import LogLine
from tengen.protocol.messages import Log, NetworkExported
from tests.helpers.dashboard_samples import status
from tests.monitor.dashboard.test_app import Silent, settle

SIZE = (120, 34)
MONOSPACED = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', 'Courier New', monospace"
SANS = "Arial, 'DejaVu Sans', 'Liberation Sans', sans-serif"
_SVG = "http://www.w3.org/2000/svg"
_ADVANCE = 0.6  # of a letter of a monospaced font, in sizes of the font
# A word; dots of Braille one by one, since they often come from a font with other widths.
_PIECE = re.compile(r"[\u2800-\u28ff]|[^\s\u2800-\u28ff]+")


def self_contained(svg: str) -> str:
    """Textual's picture without web fonts, style sheets and padding."""
    root = xml.fromstring(svg)
    styles = "".join(each.text or "" for each in root.iter(f"{{{_SVG}}}style"))
    rules = {
        name: dict(re.findall(r"([\w-]+)\s*:\s*([^;]+?)\s*(?:;|$)", body))
        for name, body in re.findall(r"\.([\w-]+)\s*\{([^}]*)\}", styles)
    }
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith("}style"):
                parent.remove(child)
            elif child.tag.endswith("}text"):
                look = rules.get(child.attrib.pop("class", ""), {})
                at = list(parent).index(child)
                parent.remove(child)
                parts = [child] if "font-family" in look else list(_words(child))
                for part in reversed(parts):
                    _dress(part, look)
                    parent.insert(at, part)
            elif child.attrib.pop("class", "").endswith("-matrix"):
                child.set("font-family", MONOSPACED)
                child.set("font-size", f"{_cell(child[0]) / _ADVANCE:.4g}")
    for line in [each for each in root.iter(f"{{{_SVG}}}clipPath") if "-line-" in each.get("id", "")]:
        next(each for each in root.iter() if line in list(each)).remove(line)
    root.attrib.pop("class", None)
    xml.register_namespace("", _SVG)
    xml.indent(root, " ")
    return xml.tostring(root, encoding="unicode") + "\n"


def _words(text: xml.Element) -> list[xml.Element]:
    """The words of one line of a terminal, each where it stands."""
    said = (text.text or "").rstrip("\n")
    x, cell = float(text.get("x", 0)), _cell(text)
    found = []
    for piece in _PIECE.finditer(said):
        cells = cell_len(piece[0])
        word = xml.Element(
            text.tag,
            {
                "x": f"{x + cell * cell_len(said[: piece.start()]):.5g}",
                "y": text.get("y", "0"),
                "textLength": f"{cell * cells:.5g}",
                "lengthAdjust": "spacingAndGlyphs",
            },
        )
        word.text = piece[0]
        found.append(word)
    return found


def _cell(text: xml.Element) -> float:
    """How wide a cell of the terminal is; Rich counts characters there, even wide ones."""
    return float(text.get("textLength", 0)) / max(len((text.text or "").rstrip("\n")), 1)


def _dress(text: xml.Element, look: dict[str, str]) -> None:
    """Say at the element what the style sheet said for its class."""
    for name in ("fill", "font-weight", "font-style", "text-decoration", "font-size"):
        if name in look:
            text.set(name, look[name])
    if "font-family" in look:
        text.set("font-family", SANS)


async def main(path: Path) -> None:
    app = Dashboard(Silent(), "go9")
    async with app.run_test(size=SIZE) as pilot:
        for step in range(-60_000, 3211, 30):
            app.client.hear(status(step))
        app.client.hear(Log("info", "network 12: validation loss 1.8 (before: 1.85)"))
        app.client.hear(
            NetworkExported("go9-main-s49152-d12000", "runs/go9/models/go9-main-s49152-d12000", 6000, 49152, 1.8)
        )
        app.client.hear(Log("warning", "upload of go9-main-s45056-d11000: 503 Service Unavailable; again in 8 s"))
        app.client.hear(LogLine("stderr", "12:01:07 chunk-00412.npz: the file ends too early; passed over"))
        app.client.hear(Log("info", "410 of 1,000 new chunks; training network 13 for 5,000 steps"))
        await settle(app, pilot)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self_contained(app.export_screenshot(title="tengen tui go9")))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
