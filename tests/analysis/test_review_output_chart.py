import itertools
import xml.etree.ElementTree as xml
from dataclasses import replace

import pytest

from tengen.analysis import review_output
from tests.helpers.analyses import elements, go_review


def test_the_line_is_the_value_for_black_after_each_move() -> None:
    svg = review_output.draw(go_review())
    (line,) = elements(svg, "value")
    points = [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
    steps = {round(b[0] - a[0], 1) for a, b in itertools.pairwise(points)}
    assert len(points) == 5
    assert len(steps) == 1
    # The scale, from its labels.
    root = xml.fromstring(svg)
    heights = {each.text: float(each.get("y", 0)) - 0.35 * 12 for each in root.iter() if each.tag.endswith("text")}
    middle, unit = (heights["-1.0"] + heights["+1.0"]) / 2, (heights["-1.0"] - heights["+1.0"]) / 2
    values = [(middle - y) / unit for _, y in points]
    assert values == pytest.approx([0.10, 0.10, 0.90, 0.92, 1.0], abs=0.01)


def test_mistakes_are_marked_by_whose_they_are_and_the_worst_are_named() -> None:
    svg = review_output.draw(go_review())
    assert len(elements(svg, "blunder p1")) == 1
    assert len(elements(svg, "inaccuracy p1")) == 1
    assert not elements(svg, "p0")
    assert [each.text for each in elements(svg, "label")] == ["2 A1", "4 pass"]


def test_half_a_review_is_half_a_line_and_names_may_be_anything() -> None:
    whole, half = go_review(("<&>" * 50, '"')), go_review(until=2)
    ends = []
    for review in (whole, half, replace(half, moves=())):
        (line,) = elements(review_output.draw(review), "value")
        ends.append(float(line.get("points", "").split()[-1].split(",")[0]))
    assert ends[0] > ends[1] > ends[2]
