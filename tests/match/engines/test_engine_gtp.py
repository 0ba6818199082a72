"""The asking side of GTP, with an engine that misbehaves in every way, and with GNU Go."""

import shlex
from pathlib import Path

import jax
import pytest

from tengen import games
from tengen.errors import TengenError
from tengen.match.engines import engine
from tengen.match.engines.engine import RESIGN, Terms, points
from tengen.match.engines.process import Fault
from tests.helpers.foreign_engines import GNUGO, HASTY, PATIENT, fake
from tests.helpers.patience import LONG

GAME = games.make("go", size=5, komi=6.5)


def test_a_game_with_a_well_behaved_engine() -> None:
    player = engine.start(fake("gtp", "fine"), GAME, Terms(seconds=LONG))
    try:
        assert player.about == "Fake 1"
        player.tell(0, "C3")
        assert player.choose(1) == "pass"
        assert player.opinion() == "B+99.5"
        player.begin()
        assert player.choose(0) == "pass"
    finally:
        player.close()


@pytest.mark.parametrize(
    ("behaviour", "kind", "words"),
    [
        ("crash", "crash", "exit status 3; it said: first line / Traceback: boom"),
        ("killed", "crash", "SIGKILL"),
        ("hang", "time", "did not answer 'genmove b' within 0.5 s"),
        ("nonsense", "nonsense", "answered genmove with 'banana'"),
        ("garbage", "nonsense", "'hello there', which is not GTP"),
        ("endless", "nonsense", "megabyte"),
    ],
)
def test_what_goes_wrong_has_a_name(behaviour: str, kind: str, words: str) -> None:
    terms = HASTY if kind == "time" else PATIENT
    player = engine.start(fake("gtp", behaviour), GAME, terms)
    try:
        with pytest.raises(Fault) as caught:
            player.choose(0)
        assert caught.value.kind == kind
        assert words in caught.value.words
    finally:
        player.close()


def test_a_flood_of_words_is_no_fault() -> None:
    player = engine.start(fake("gtp", "flood"), GAME, PATIENT)
    assert player.choose(0) == "pass"
    player.close()


def test_resigning_and_refusing() -> None:
    player = engine.start(fake("gtp", "resign"), GAME, PATIENT)
    assert player.choose(0) == RESIGN
    player.close()
    player = engine.start(fake("gtp", "refuse"), GAME, PATIENT)
    with pytest.raises(Fault, match="refused 'play b A1': 'no such thing'") as caught:
        player.tell(0, "A1")
    assert caught.value.kind == "refused move"
    player.close()


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("stillborn", "did not start: crash: ended with exit status 1; it said: no licence"),
        ("old", "speaks version '1' of GTP, expected 2"),
        ("small", "Fake 1 cannot play on a 5x5 board: no such thing"),
    ],
)
def test_one_that_does_not_start(behaviour: str, words: str) -> None:
    with pytest.raises(TengenError, match=words):
        engine.start(fake("gtp", behaviour), GAME, PATIENT)


def test_one_that_never_says_a_word() -> None:
    with pytest.raises(TengenError, match="did not start: time: did not answer 'name' within 0.3 s"):
        engine.start(fake("gtp", "mute"), GAME, Terms(patience=0.3))


def test_engines_play_their_own_game() -> None:
    with pytest.raises(TengenError, match="play Go .* and this is tic_tac_toe"):
        engine.check("gtp:gnugo", games.make("tic_tac_toe"))
    with pytest.raises(TengenError, match="play chess .* and this is go"):
        engine.check("uci:stockfish", GAME)
    with pytest.raises(TengenError, match="there is no such program"):
        engine.check("gtp:no-such-engine", GAME)
    assert engine.is_foreign("gtp:gnugo --mode gtp")
    assert engine.is_foreign("uci@100:stockfish")
    assert not engine.is_foreign("mcts:200")
    assert not engine.is_foreign(str(Path("runs/gtp")))


@pytest.mark.parametrize("terms", [Terms(seconds=0), Terms(seconds=-1.0), Terms(patience=float("nan"))])
def test_times_that_are_none(terms: Terms) -> None:
    with pytest.raises(TengenError, match="expected a number of seconds above 0"):
        terms.check()


def test_scores() -> None:
    texts = ("B+3.5", "w+12", "0", "Draw", "B+R", "W+", "nonsense", "")
    assert [points(text) for text in texts] == [3.5, -12.0, 0.0, 0.0, None, None, None, None]


@pytest.mark.skipif(GNUGO is None, reason="gnugo is not installed")
def test_gnugo_itself() -> None:
    assert GNUGO is not None
    text = f"gtp:{shlex.quote(GNUGO)} --mode gtp --level 1 --chinese-rules"
    player = engine.start(text, GAME, Terms(seconds=LONG))
    try:
        assert player.about.startswith("GNU Go 3")
        player.tell(0, "C3")
        assert points(player.opinion() or "") is not None
        move = player.choose(1)
        assert move == "PASS" or GAME.parse_action(GAME.init(jax.random.key(0)), move) >= 0
        player.begin()
        with pytest.raises(Fault, match="refused 'play w Z99'"):
            player.tell(1, "Z99")
    finally:
        player.close()
    with pytest.raises(TengenError, match="did not start"):
        engine.start(f"gtp:{GNUGO} --no-such-option", GAME, PATIENT)
