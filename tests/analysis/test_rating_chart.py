"""The picture, read back as XML."""

import math
import xml.etree.ElementTree as xml

from tengen.analysis.rating_chart import Mark, draw

_SVG = "{http://www.w3.org/2000/svg}"


def test_every_player_is_there_and_higher_is_stronger() -> None:
    marks = [Mark("n1", 100, 20, 0), Mark("n2", 900, 50, 1e6), Mark("n3", 1000, 5880, 2e6), Mark("random", 0, 0, None)]
    root = xml.fromstring(draw("<run> & co\x00", "samples", marks))
    dots = root.findall(f"{_SVG}circle")
    assert [dot.attrib["class"] for dot in dots] == ["network"] * 3
    heights = [float(dot.attrib["cy"]) for dot in dots]
    assert heights == sorted(heights, reverse=True)
    across = [float(dot.attrib["cx"]) for dot in dots]
    assert math.isclose(across[1] - across[0], across[2] - across[1], abs_tol=0.02)
    lines = root.findall(f"{_SVG}line")
    assert [line.attrib.get("class") for line in lines].count("error") == 3
    assert [line.attrib.get("class") for line in lines].count("anchor") == 1
    texts = {text.text for text in root.iter(f"{_SVG}text")}
    assert {"<run> & co ", "samples", "random", "Elo"} <= texts
    for element in root.iter():  # nothing outside the picture
        for key in ("x", "cx", "x1", "x2"):
            assert 0 <= float(element.attrib.get(key, 0)) <= 900
        for key in ("y", "cy", "y1", "y2"):
            assert 0 <= float(element.attrib.get(key, 0)) <= 480


def test_one_player_alone() -> None:
    assert "<circle" in draw("r", "steps", [Mark("n", 0, 0, 5.0)])
    assert "<svg" in draw("r", "steps", [])
