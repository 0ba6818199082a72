import json
import re
from pathlib import Path

import numpy as np
import pytest

from tengen.analysis import query, report, saving
from tengen.analysis.analysis import Analysis, analyze, as_dict
from tengen.config.settings.match import EngineSettings
from tengen.engine.engine import Engine
from tengen.run.networks import FoundNetwork
from tests.helpers.analyses import elements
from tests.helpers.networks import untrained

QUICK = EngineSettings(leaves=4, slots=2048)


def _at(engine: Engine, moves: str, visits: int = 300) -> Analysis:
    return analyze(engine, query.new_game(engine.found.saved).then(moves), visits)


def test_json_says_what_the_network_and_the_search_say(engine: Engine) -> None:
    known = _at(engine, "a1 b1 a2 b2")  # a3 wins
    told = json.loads(json.dumps(as_dict(known), allow_nan=False))
    assert told["position"]["moves"] == ["a1", "b1", "a2", "b2"]
    assert (told["position"]["to_play"], told["position"]["player"], told["position"]["over"]) == (0, "x", False)
    says = told["network_says"]
    assert says["win"] + says["draw"] + says["loss"] == pytest.approx(1, abs=1e-5)
    assert says["value"] == pytest.approx(says["win"] - says["loss"], abs=1e-5)
    assert sum(each["prior"] for each in says["policy"]) == pytest.approx(1, abs=1e-4)
    assert {each["move"] for each in says["policy"]} == {"c1", "c2", "a3", "b3", "c3"}
    assert says["moves_left"] >= 0
    found = told["search"]
    assert found["visits"] == 300 == 1 + sum(each["visits"] for each in found["candidates"])
    best = found["candidates"][0]
    assert (best["move"], best["value"], best["line"]) == ("a3", 1.0, ["a3"])


def test_targets_that_a_game_declares_are_shown(tmp_path: Path) -> None:
    heads = ("mine", "filled", "lead", "stones")
    found = untrained(tmp_path, "tests.helpers.every_target:EveryTarget", heads=heads)
    known = _at(Engine(found, settings=QUICK), "a1 b1", visits=0)
    told = as_dict(known)["network_says"]["targets"]
    assert {name: np.shape(value) for name, value in told.items()} == {
        "mine": (3, 3),
        "filled": (9,),
        "lead": (),
        "stones": (),
    }
    assert ((np.array(told["mine"]) > 0) & (np.array(told["mine"]) < 1)).all(), "probabilities"
    assert f", lead {told['lead']:.3g}, stones {told['stones']:.3g}" in report.as_text(known)


def test_values_are_for_who_moves(engine: Engine) -> None:
    for moves, mover in (("a1 b1 a2 b2", "x"), ("a1 b1 a2 b2 c3", "o")):  # both can win at once
        known = _at(engine, moves)
        assert known.mover == mover
        assert known.search is not None
        assert known.search.value > 0.8


def test_the_text_has_the_board_the_value_and_the_moves(engine: Engine) -> None:
    text = report.as_text(_at(engine, "a1 b1 a2 b2"), most=2)
    assert "1 x o ." in text
    assert "x to play after 4 moves (last: b2)" in text
    first = re.search(r"^ +1  (\S+) +(\S+)% +(\d+) +(\S+)  (.*)$", text, re.MULTILINE)
    assert first is not None
    assert (first[1], first[4], first[5]) == ("a3", "+1.000", "a3")
    assert "... and 3 more" in text


def test_without_visits_there_is_the_network_alone(engine: Engine) -> None:
    known = _at(engine, "", visits=0)
    assert known.search is None
    assert as_dict(known)["search"] is None
    assert "x to play after 0 moves" in report.as_text(known)
    assert "visits" not in report.as_text(known)
    assert len(elements(report.draw(known), "heat")) == 9


def test_a_finished_game_has_a_result_and_no_moves(engine: Engine) -> None:
    known = _at(engine, "a1 b1 a2 b2 a3")
    told = as_dict(known)
    assert (told["position"]["over"], told["position"]["result"]) == (True, 1.0)
    assert told["search"] is None
    assert told["network_says"] is None
    assert "the game is over after 5 moves (last: a3): x has won" in report.as_text(known)
    assert len(elements(report.draw(known), "stone")) == 5
    assert "a draw" in report.as_text(_at(engine, "a1 b1 c1 b2 a2 c2 b3 a3 c3"))


def test_the_picture_shows_what_was_asked_for(engine: Engine) -> None:
    known = _at(engine, "a1 b1 a2 b2")
    everything = report.draw(known)
    assert len(elements(everything, "stone")) == 4
    assert elements(everything, "heat")
    (expected,) = elements(everything, "expected")
    assert expected.get("class") == "expected p0"
    assert not elements(report.draw(known, ("policy",)), "expected")
    assert not elements(report.draw(known, ("line",)), "heat")
    most = max(elements(report.draw(known, ("visits",)), "heat"), key=lambda each: float(each.get("fill-opacity", 0)))
    assert (most.get("x"), most.get("y")) == ("34", "122")  # a3


def test_the_whole_tree_is_dumped(engine: Engine, tmp_path) -> None:
    known = _at(engine, "a1 b1")
    assert known.search is not None
    saving.save_tree(tmp_path / "tree.json", engine.tree)
    saving.save_tree(tmp_path / "tree.txt", engine.tree)
    root = json.loads((tmp_path / "tree.json").read_text())

    def count(node: dict) -> int:
        # What is not below a move was a visit of the node itself: one, or many where the game is over.
        own = node["visits"] - sum(child["visits"] for child in node["children"])
        assert own == 1 or (node["over"] and not node["children"])
        return 1 + sum(map(count, node["children"]))

    assert count(root) == known.search.nodes
    moves = [known.line(each.line)[0].name for each in known.search.candidates]
    assert sorted(child["move"] for child in root["children"]) == sorted(moves)
    assert len(re.findall(r"\d visits", (tmp_path / "tree.txt").read_text())) == known.search.nodes


@pytest.mark.slow
def test_ownership_is_turned_to_the_first_player(go5: FoundNetwork) -> None:
    game = query.new_game(go5.saved)
    engine = Engine(go5, game.game, QUICK)
    for moves in ("", "C3"):
        known = analyze(engine, game.then(moves), 0)
        assert known.look is not None
        assert known.look.ownership is not None
        sign = 1 if moves == "" else -1  # White moves after C3
        told = np.array(as_dict(known)["network_says"]["ownership"])
        np.testing.assert_allclose(told, sign * known.look.ownership, atol=1e-5)
        assert "ownership: X Black's" in report.as_text(known)
        assert "score" in report.as_text(known)
        black = (told > 0.05).sum()
        assert len(elements(report.draw(known, ("ownership",)), "owner p0")) >= black


def test_a_game_without_a_board_is_drawn_as_bars(tmp_path) -> None:
    from tests.helpers.networks import untrained

    found = untrained(tmp_path / "net", "hironaka", "mlp1x8", max_points=3, dimension=2)
    game = query.new_game(found.saved)
    known = analyze(Engine(found, game.game, QUICK), game, 0)
    svg = report.draw(known)
    assert [each.text for each in elements(svg, "name")] == ["{0,1}"]
    assert "host to play" in report.as_text(known)
