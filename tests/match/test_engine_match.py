"""Games with foreign engines: the referee, many tables at once, and what becomes of engines that misbehave."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tengen import games
from tengen.errors import TengenError
from tengen.match import players
from tengen.match.engine_match import EngineMatch, Referee, Side
from tengen.match.engines.engine import Terms
from tengen.match.engines.pool import EnginePool
from tengen.match.engines.process import Fault
from tengen.match.match_games import EngineOpinions, PlayedGame
from tengen.match.openings import MatchOpenings
from tengen.match.players import Player
from tests.helpers.foreign_engines import GNUGO, HASTY, PATIENT, fake
from tests.match.engines.test_process import gone
from tests.oracles.go import Go as SlowGo

GAME = games.make("go", size=5, komi=6.5, max_moves=60)
PASS = 25
KEY = jax.random.key(0)


@pytest.fixture
def start() -> MatchOpenings:
    """Three openings of two moves."""
    return MatchOpenings((), np.array([[12, 6], [0, 24], [7, 17]], np.int32), np.zeros((3, 2), np.uint32))


def never() -> bool:
    return False


def play(
    start: MatchOpenings, a: Side, b: Side, games: int = 6, parallel: int = 2, stop: Callable[[], bool] = never
) -> list[PlayedGame]:
    hall = EngineMatch(GAME, (a, b), lambda: start, KEY, parallel, tables=parallel)
    return [game for game in hall.play(range(games), stop) if game is not None]


def crew(behaviour: str, terms: Terms = PATIENT, log: Path | None = None) -> EnginePool:
    return EnginePool(fake("gtp", behaviour, log), GAME, terms)


def check_rules(played: PlayedGame, start: MatchOpenings) -> SlowGo:
    """Play the game again by slow rules, which refuse what is not legal."""
    slow = SlowGo(5, komi=6.5, max_moves=60)
    for action in played.actions:
        slow.play(action)
    assert played.opening == 2
    np.testing.assert_array_equal(played.actions[:2], start.actions[played.number // 2])
    return slow


@pytest.mark.slow
def test_games_with_an_engine_that_passes(start: MatchOpenings) -> None:
    played = play(start, players.random(GAME), crew("fine"))
    assert sorted(game.number for game in played) == list(range(6))
    for game in played:
        slow = check_rules(game, start)
        assert slow.over
        black = slow.returns()[0]
        assert game.result == (black if game.a_first else -black)
        assert game.score == slow.score()
        assert (game.ending, game.fault, game.reason) == ("played out", "", "")
        assert game.opinions == EngineOpinions(b="B+99.5")
        engine = 1 if game.a_first else 0
        assert all(action == PASS for ply, action in enumerate(game.actions) if ply >= 2 and ply % 2 == engine)


@pytest.mark.slow
def test_two_engines(start: MatchOpenings) -> None:
    played = play(start, crew("fine"), crew("resign"))
    assert len(played) == 6
    for game in played:
        check_rules(game, start)
        assert (game.result, game.ending, game.reason, game.fault) == (1.0, "resigned", "resigned", "")
        assert game.opinions == EngineOpinions()


@pytest.mark.parametrize(
    ("behaviour", "fault", "ending", "words"),
    [
        ("crash", "crash", "forfeit", "exit status 3; it said: first line / Traceback: boom"),
        ("hang", "time", "time", "did not answer"),
        ("nonsense", "nonsense", "forfeit", "banana"),
        ("refuse", "refused move", "forfeit", "refused 'play"),
    ],
)
def test_who_misbehaves_loses(behaviour: str, fault: str, ending: str, words: str, start: MatchOpenings) -> None:
    played = play(start, players.random(GAME), crew(behaviour, HASTY if fault == "time" else PATIENT), games=2)
    assert len(played) == 2
    for game in played:
        check_rules(game, start)
        assert (game.result, game.fault, game.ending) == (1.0, fault, ending)
        assert words in game.reason


def test_an_illegal_move_loses(start: MatchOpenings) -> None:
    """It always plays in the corner, which is legal at most until somebody is there."""
    played = play(start, crew("illegal"), players.random(GAME))
    lost = [game for game in played if game.fault]
    assert len(lost) >= 4
    for game in lost:
        slow = check_rules(game, start)
        assert (game.result, game.fault, game.ending) == (-1.0, "illegal move", "forfeit")
        assert "played 'A1'" in game.reason
        assert not slow.legal_actions()[20]


def test_one_of_ours_that_breaks_the_rules_loses_too(start: MatchOpenings) -> None:
    def rule(params: Any, key: Any, states: Any, which: Any) -> Any:
        return np.full(len(which), 999, np.int32)

    played = play(start, Player("broken", rule, on_host=True), crew("fine"), games=2)
    assert [(game.result, game.fault) for game in played] == [(-1.0, "illegal move")] * 2


def test_an_engine_is_started_again_after_a_crash(start: MatchOpenings, tmp_path: Path) -> None:
    played = play(start, players.random(GAME), crew("crash", log=tmp_path / "log"))
    assert sorted(game.fault for game in played) == ["", "", "", "", "crash", "crash"]
    assert len((tmp_path / "log").read_text().splitlines()) == 4, "one that is well plays one game after the other"


def test_processes_end_with_the_match(start: MatchOpenings, tmp_path: Path) -> None:
    log, moved = tmp_path / "log", 0

    def stop() -> bool:
        nonlocal moved
        moved += log.exists()
        return moved > 8

    played = play(start, players.random(GAME), crew("hang", Terms(patience=600), log), stop=stop)
    assert played == [], "games under way are given up"
    numbers = [int(line) for line in log.read_text().splitlines()]
    assert numbers
    assert all(gone(number) for number in numbers)


def test_ctrl_c_while_an_engine_starts(start: MatchOpenings, tmp_path: Path) -> None:
    log, asked = tmp_path / "log", 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 3 and log.exists()

    assert play(start, crew("mute", Terms(patience=600), log), players.random(GAME), stop=stop) == []
    assert all(gone(int(line)) for line in log.read_text().splitlines())


def test_one_that_no_longer_starts_ends_the_match(start: MatchOpenings) -> None:
    with pytest.raises(TengenError, match="did not start: crash: ended with exit status 1; it said: no licence"):
        play(start, players.random(GAME), crew("stillborn"))


@pytest.mark.skipif(GNUGO is None, reason="gnugo is not installed")
def test_gnugo_beats_random_play(start: MatchOpenings) -> None:
    rules = "--chinese-rules --capture-all-dead --positional-superko"
    gnugo = EnginePool(f"gtp:{shlex.quote(GNUGO or '')} --mode gtp --level 1 {rules}", GAME, PATIENT)
    played = play(start, players.random(GAME), gnugo, games=4)
    for game in played:
        slow = check_rules(game, start)
        if game.ending == "played out":
            assert game.score == slow.score()
    assert {game.fault for game in played} == {""}
    assert sum(game.result for game in played) < 0


# --- The referee ------------------------------------------------------------------------------------------------


def test_the_referee_reads_and_refuses() -> None:
    referee = Referee(GAME)
    position = referee.begin(np.zeros(2, np.uint32))
    assert (position.player, position.over, position.legal.all()) == (0, False, True)
    assert referee.read(position, " c3 ") == 12
    position = referee.play(position, 12)
    assert referee.name(position, 12) == "C3"
    for move in ("C3", "Z9", "", "\x00"):
        with pytest.raises(Fault, match="played"):
            referee.read(position, move)
    position = referee.play(referee.play(position, PASS), PASS)
    assert position.over
    assert position.returns.tolist() == [1.0, -1.0]
    assert referee.score(position) == 25 - 6.5


def test_games_without_points_have_no_score() -> None:
    referee = Referee(games.make("tic_tac_toe"))
    position = referee.begin(np.zeros(2, np.uint32))
    assert referee.score(position) is None
