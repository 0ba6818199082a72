"""Play and analysis for the page, with a network that knows nothing."""

from pathlib import Path
from typing import Any

import pytest

from tengen.engine.position import IllegalMove
from tengen.errors import TengenError
from tengen.web import play
from tengen.web.play import PlayRoom
from tests.helpers.networks import QUICK, untrained
from tests.helpers.web_runs import NETWORKS, make_run


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = make_run(tmp_path_factory.mktemp("playing") / "run")
    untrained(base / "models" / NETWORKS[1], "tic_tac_toe")
    return base


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> PlayRoom:
    monkeypatch.setattr(play, "SETTINGS", QUICK)
    return PlayRoom()


def begin(room: PlayRoom, base: Path, **values: Any) -> dict[str, Any]:
    about: dict[str, Any] = {"network": "", "seat": 0, "visits": 4, **values}
    return room.begin(base, **about)


@pytest.mark.slow
def test_a_game_to_its_end_and_back(room: PlayRoom, base: Path) -> None:
    found = begin(room, base, seat=1, network=NETWORKS[1])
    assert (found["player"], len(found["record"]["moves"]), found["network"]) == (1, 1, NETWORKS[1])
    assert found["record"]["moves"][0]["value"] is not None
    while not found["over"]:
        assert found["player"] == 1
        found = room.get(found["id"]).move(found["legal"][0]["action"])
    assert found["record"]["result"] in (-1.0, 0.0, 1.0)
    count = len(found["record"]["moves"])
    found = room.get(found["id"]).undo()
    assert (found["player"], found["over"]) == (1, False)
    assert len(found["record"]["moves"]) in (count - 1, count - 2)
    assert room.get(found["id"]).export()["content"].startswith("tengen record 1")
    with pytest.raises(IllegalMove):
        room.get(found["id"]).move(found["record"]["moves"][0]["action"])
    with pytest.raises(TengenError, match="nothing to take back"):
        room.get(begin(room, base, seat=0)["id"]).undo()


def test_a_pasted_game_is_walked_through_and_analysed(room: PlayRoom, base: Path) -> None:
    found = begin(room, base, seat=None, text="a1 b2 c3")
    assert [move["name"] for move in found["record"]["moves"]] == ["a1", "b2", "c3"]
    found = room.get(found["id"]).goto([0])
    assert len(found["record"]["moves"]) == 1
    found = room.get(found["id"]).goto([0, 1, 2])  # a variation
    assert [move["name"] for move in found["record"]["moves"]] == ["a1", "b1", "c1"]
    told: list[dict[str, Any]] = []
    room.get(found["id"]).think(8, told.append)
    assert [line["done"] for line in (told[0], told[-1])] == [False, True]
    assert told[-1]["searched"]["visits"] == 8
    assert sum(told[0]["heat"].values()) == pytest.approx(1, abs=0.01)
    assert told[-1]["searched"]["candidates"][0]["place"] is not None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"network": "../.."}, "there is no network '../..'"),
        ({"visits": 0}, "visits: expected a number from 1"),
        ({"text": "nonsense"}, "expected SGF, PGN, FEN or moves"),
        ({"text": "(;GM[1]SZ[9])"}, "a game of go, and the network plays tic_tac_toe"),
        ({"text": "a1 " * 100_000}, "more than 200,000 characters"),
    ],
)
def test_what_makes_no_sense_is_answered_in_words(
    room: PlayRoom, base: Path, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(TengenError, match=message):
        begin(room, base, **values)


@pytest.mark.slow
def test_only_the_newest_games_are_kept(room: PlayRoom, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "_SESSIONS", 1)
    first, second = begin(room, base), begin(room, base)
    room.get(second["id"]).state()
    with pytest.raises(TengenError, match="begin another"):
        room.get(first["id"]).state()


def test_the_network_is_asked_about_a_recorded_game(room: PlayRoom, base: Path) -> None:
    found = room.look(base, NETWORKS[1], "00000001.txt:0", 2)
    assert found["network"] == NETWORKS[1]
    assert "the network gives x" in found["words"]
    assert (-1 <= found["value"] <= 1, found["score"]) == (True, None)  # this network has no score
    assert set(found["heat"]) == {"1", "2", "4", "5", "6", "7", "8"}
    with pytest.raises(TengenError, match="the game is over here"):
        room.look(base, NETWORKS[1], "00000001.txt:0", 5)
