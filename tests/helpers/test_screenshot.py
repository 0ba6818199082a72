"""The picture of the dashboard needs nothing from the web and no particular viewer."""

import io
import itertools
import re
import xml.etree.ElementTree as xml

from rich.console import Console
from rich.text import Text

from tests.helpers import paths
from tests.helpers.screenshot import self_contained

PICTURE = paths.DOCS / "images" / "tui.svg"
SVG = "{http://www.w3.org/2000/svg}"


def words(svg: str) -> list[xml.Element]:
    return [each for each in xml.fromstring(svg).iter(f"{SVG}text") if "textLength" in each.attrib]


def check(svg: str) -> None:
    assert "http" not in svg.replace(SVG[1:-1], "")
    root = xml.fromstring(svg)
    assert not list(root.iter(f"{SVG}style"))
    used = set(re.findall(r"url\(#([^)]+)\)", svg))
    assert used == {each.get("id") for each in root.iter(f"{SVG}clipPath")}
    families = {each.get("font-family", "") for each in root.iter() if "font-family" in each.attrib}
    assert {family.rpartition(", ")[2] for family in families} == {"monospace", "sans-serif"}
    for each in words(svg):
        said = each.text or ""
        assert said == said.strip()  # blanks are dropped by some viewers
        assert "\N{NO-BREAK SPACE}" not in said
        assert each.get("fill", "").startswith("#")


def test_the_picture_in_the_documentation() -> None:
    svg = PICTURE.read_text("utf-8")
    check(svg)
    found = words(svg)
    assert {"TRAINING", "pipeline:", "networks", "uploading"} <= {each.text for each in found}
    lines = itertools.groupby(sorted(found, key=lambda each: float(each.get("y", 0))), lambda each: each.get("y"))
    for _, line in lines:  # no word runs into the next one
        ends = sorted((float(e.get("x", 0)), float(e.get("x", 0)) + float(e.get("textLength", 0))) for e in line)
        assert all(one[1] <= other[0] + 0.1 for one, other in itertools.pairwise(ends))


def test_every_word_stands_in_its_own_cells() -> None:
    console = Console(record=True, width=40, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text("   ab  c ") + Text("loud", "bold red") + Text(" 本⠁⠂ end"))
    svg = self_contained(console.export_svg(title="a title"))
    check(svg)
    cell = 12.2
    starts = {each.text: round(float(each.get("x", 0)) / cell, 2) for each in words(svg)}
    assert starts == {"ab": 3, "c": 7, "loud": 9, "本": 14, "⠁": 16, "⠂": 17, "end": 19}
    lengths = {each.text: round(float(each.get("textLength", 0)) / cell, 2) for each in words(svg)}
    assert lengths == {"ab": 2, "c": 1, "loud": 4, "本": 2, "⠁": 1, "⠂": 1, "end": 3}
    (loud,) = (each for each in words(svg) if each.text == "loud")
    assert loud.get("font-weight") == "bold"
    assert {each.get("fill") for each in words(svg)} > {loud.get("fill")}
