"""The picture of a run, read back as XML."""

import json
import math
import xml.etree.ElementTree as xml
from collections.abc import Iterator
from pathlib import Path

import pytest

from tengen import match
from tengen.analysis import run_chart
from tengen.analysis.run_chart import RatingMark
from tengen.monitor.summary import RatingPoint
from tengen.run.changes import SettingChange

_SVG = "{http://www.w3.org/2000/svg}"
RATINGS = match.fit([match.MatchResult("n1", "random", 8, 0, 2), match.MatchResult("n1", "mcts:50", 4, 0, 6)], "random")
CURVE = (RatingPoint(0, -20, 90), RatingPoint(60, 200, 80), RatingPoint(120, 300, 5000))
LOSSES = {"loss": [(30.0, 2.5), (120.0, 2.0)], "policy": [(30.0, 1.5), (120.0, 1.25)]}


def elements(text: str, kind: str) -> list[xml.Element]:
    return [element for element in xml.fromstring(text).iter() if element.attrib.get("class") == kind]


def numbers(root: xml.Element) -> Iterator[tuple[str, float]]:
    for element in root.iter():
        for key in ("x", "cx", "x1", "x2", "y", "cy", "y1", "y2"):
            if key in element.attrib:
                yield key, float(element.attrib[key])


def test_losses_and_ratings_over_the_same_time() -> None:
    text = run_chart.draw("<c4> & co", LOSSES, RATINGS, CURVE)
    root = xml.fromstring(text)
    lines = [
        [tuple(map(float, at.split(","))) for at in one.attrib["points"].split()] for one in elements(text, "loss")
    ]
    assert [len(line) for line in lines] == [2, 2]
    dots = elements(text, "network")
    assert len(dots) == len(elements(text, "error")) == 3
    assert float(dots[-1].attrib["cx"]) == pytest.approx(lines[0][-1][0]), "one axis of time"
    heights = [float(dot.attrib["cy"]) for dot in dots]
    assert heights == sorted(heights, reverse=True)
    assert lines[0][0][1] < lines[0][1][1], "a loss that falls goes down"
    assert len(elements(text, "anchor")) == 2
    words = {one.text for one in root.iter(f"{_SVG}text")}
    assert {"<c4> & co: losses and ratings", "Elo", "loss", "policy", "random", "mcts:50", "00:02:00"} <= words
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert all(0 <= value <= (width if "x" in key else height) for key, value in numbers(root))


@pytest.mark.parametrize(
    "lines", [{}, {"loss": [(5.0, 1.0)]}, {"loss": [(n, 1e9 if n == 3 else 1.0) for n in range(5000)]}]
)
@pytest.mark.parametrize("curve", [(), CURVE[:1], (RatingPoint(9e6, 1), RatingPoint(9e6, 1))])
def test_there_is_always_a_picture(lines: dict[str, list[tuple[float, float]]], curve: tuple[RatingPoint, ...]) -> None:
    text = run_chart.draw("run", lines, None, curve)
    assert len(elements(text, "network")) == len(curve)
    assert ("nothing was learned yet" in text) == (not lines)
    assert len(text) < 60_000


def test_losses_of_all_kinds_of_runs() -> None:
    lines = [
        {"kind": "session", "elapsed": 0.0},
        {"kind": "progress", "elapsed": 1.0, "loss": None, "losses": {}},
        {"kind": "progress", "elapsed": 2.0, "loss": 3.0, "losses": {"policy": 2.0, "value": math.inf}},
        {"kind": "progress", "elapsed": 3.0, "loss": None, "losses": {"host": 0.5}},
        {"kind": "progress", "elapsed": 4.0, "losses": "garbage", "parts": {"train main": {"figures": {"loss": 1.5}}}},
        {"kind": "rating", "elapsed": 5.0, "loss": 9.0},
        {"kind": "progress", "elapsed": 6.0, "parts": {"train main": {"figures": {"losses": {"loss": 1.2}}}}},
    ]
    found = run_chart.losses(lines)
    assert found == {"loss": [(2.0, 3.0), (4.0, 1.5), (6.0, 1.2)], "policy": [(2.0, 2.0)], "host": [(3.0, 0.5)]}


def test_the_file_appears_whole_and_a_disk_that_refuses_ends_nothing(tmp_path: Path) -> None:
    line = {"time": "2026-01-31T12:00:00.125+00:00", "elapsed": 7.0, "kind": "progress", "loss": 2.0}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    assert run_chart.write(tmp_path, "run") == ""
    assert len(elements((tmp_path / "chart.svg").read_text(), "loss")) >= 1
    assert not list(tmp_path.glob(".*")), "nothing half-written stays"
    (tmp_path / "chart.svg").unlink()
    (tmp_path / "chart.svg").mkdir()
    assert run_chart.write(tmp_path, "run").startswith("the chart was not drawn: ")


def test_every_player_is_there_and_higher_is_stronger() -> None:
    marks = [
        RatingMark("n1", 100, 20, 0),
        RatingMark("n2", 900, 50, 1e6),
        RatingMark("n3", 1000, 5880, 2e6),
        RatingMark("random", 0, 0, None),
    ]
    root = xml.fromstring(run_chart.draw_ratings("<run> & co\x00", "samples", marks))
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


def test_one_player_alone_or_none() -> None:
    assert "<circle" in run_chart.draw_ratings("r", "steps", [RatingMark("n", 0, 0, 5.0)])
    assert "<svg" in run_chart.draw_ratings("r", "steps", [])


def test_changes_of_settings_are_lines_up_both_panels() -> None:
    made = [SettingChange(f"2026-01-31 12:00:0{at} UTC", "train.lr_scale", "1.0", "0.3", "set") for at in (1, 1, 2)]
    text = run_chart.draw("c4", LOSSES, RATINGS, CURVE, list(zip((60.0, 60.0, 1e9), made, strict=True)))
    columns = [float(line.attrib["x1"]) for line in elements(text, "change")]
    assert len(columns) == 4
    assert columns[:2] == columns[2:]
    dots = [float(dot.attrib["cx"]) for dot in elements(text, "network")]
    assert columns[:2] == pytest.approx(dots[1:]), "at the times of the second rating, and at the end"
    words = [element.text for element in xml.fromstring(text).iter(f"{_SVG}text")]
    assert "1: 00:01:00  train.lr_scale: 1.0 -> 0.3, train.lr_scale: 1.0 -> 0.3" in words


def test_numbers_of_changes_are_never_written_over_each_other() -> None:
    made = [SettingChange(f"2026-01-31 12:00:0{at} UTC", "train.lr_scale", "1.0", "0.3", "set") for at in range(4)]
    text = run_chart.draw("c4", LOSSES, RATINGS, CURVE, list(zip((10.0, 11.0, 12.0, 90.0), made, strict=True)))
    [colour] = {line.attrib["stroke"] for line in elements(text, "change")}
    words = [each.text or "" for each in xml.fromstring(text).iter(f"{_SVG}text") if each.attrib.get("fill") == colour]
    assert [word for word in words if ":" not in word] == ["1-3", "4", "1-3", "4"]
    assert len(elements(text, "change")) == 8, "the lines are there all the same"
