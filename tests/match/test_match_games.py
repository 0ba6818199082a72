"""The figures of a match, next to counts by hand."""

import json
from typing import Any

from tengen.match.match_games import EngineOpinions, MatchGames, PlayedGame
from tengen.match.results import MatchResult


def game(number: int, result: float, length: int = 10, **more: Any) -> PlayedGame:
    return PlayedGame(number, tuple(range(length)), 2, (0, 0), result, **more)


GAMES = (
    game(0, 1.0, 20, score=5.5, opinions=EngineOpinions(b="B+5.5")),
    game(1, -1.0, score=3.5, opinions=EngineOpinions(b="B+4.5")),
    game(2, 0.0, score=0.0, opinions=EngineOpinions(b="W+1")),
    game(3, 1.0, ending="forfeit", fault="crash", reason="exit status 3"),
    game(5, 1.0, ending="time", fault="time", reason="slow"),
    game(6, -1.0, ending="forfeit", fault="illegal move", reason="A1"),
    game(7, 1.0, ending="forfeit", fault="crash", reason="exit status 4"),
)


def match(names: tuple[str, str], games: int, *played: PlayedGame) -> MatchGames:
    found = MatchGames(names, games)
    found.add(*played)
    return found


def test_figures() -> None:
    tally = match(("net", "gnugo"), 10, *reversed(GAMES))
    assert tally.finished == list(GAMES)
    assert tally.missing == [4, 8, 9]
    assert tally.result == MatchResult("net", "gnugo", 4, 1, 2)
    there = [True] * 4 + [False] + [True] * 3
    same = MatchResult.of_games("net", "gnugo", [1, -1, 0, 1, 0, 1, -1, 1], there)
    assert tally.result.interval == same.interval
    assert tally.mean_length == 80 / 7
    assert tally.endings == {"played out": 3, "forfeit": 3, "time": 1}
    assert [one.number for one in tally.faults(0)] == [6]
    assert [one.number for one in tally.faults(1)] == [3, 5, 7]
    assert tally.other_counts(0) == (0, 0, 0)
    assert tally.other_counts(1) == (3, 2, 1)


def test_words() -> None:
    lines = match(("net", "gnugo"), 10, *GAMES).lines()
    assert lines[0].startswith("net - gnugo: 64.3 % (")
    assert "  moving first: 50.0 % of 3, +1 =1 -1" in lines
    assert "  moving second: 75.0 % of 4, +3 =0 -1" in lines
    assert "  11 moves a game; 3 played out, 3 forfeit, 1 time" in lines
    assert "  gnugo lost 2 by crash: game 4: exit status 3" in lines
    assert "  gnugo lost 1 by time: game 6: slow" in lines
    assert "  net lost 1 by illegal move: game 7: A1" in lines
    assert any(
        "gnugo counts 2 of 3 final positions differently, and names another winner in 1" in line for line in lines
    )


def test_as_json() -> None:
    about = json.loads(json.dumps(match(("net", "gnugo"), 10, *GAMES).to_dict(), allow_nan=False))
    assert (about["wins"], about["games"], about["of"]) == (4, 7, 10)
    assert about["by_seat"]["second"] == {"wins": 3, "draws": 0, "losses": 1}
    assert about["faults"]["gnugo"][0] == {"game": 4, "fault": "crash", "reason": "exit status 3"}
    assert about["other_counts"] == {"gnugo": {"counted": 3, "different": 2, "other_winner": 1}}
    json.dumps(match(("a", "b"), 2, game(0, 1.0)).to_dict(), allow_nan=False)


def test_before_the_first_game() -> None:
    tally = match(("a", "b"), 4)
    assert tally.lines() == ["a - b: no game is over yet"]
    assert tally.to_dict() == {"a": "a", "b": "b", "games": 0, "of": 4}
    assert tally.result.games == 0
