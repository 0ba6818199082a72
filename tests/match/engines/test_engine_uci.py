"""The asking side of UCI, with an engine that misbehaves, and with Stockfish."""

import shlex
import time

import jax
import numpy as np
import pytest

from tengen import games
from tengen.errors import TengenError
from tengen.match.engines import engine
from tengen.match.engines.engine import Terms, UciEngine
from tengen.match.engines.process import Fault, Process
from tests.helpers.foreign_engines import HASTY, PATIENT, STOCKFISH, fake
from tests.helpers.patience import LONG

GAME = games.make("tic_tac_toe")  # UCI itself does not look at the game
needs_stockfish = pytest.mark.skipif(STOCKFISH is None, reason="stockfish is not installed")


def start(behaviour: str, terms: Terms = PATIENT) -> engine.ForeignEngine:
    return engine.start(fake("uci", behaviour), GAME, terms)


def test_a_game_with_a_well_behaved_engine() -> None:
    player = start("fine", Terms(seconds=LONG, nodes=100, options=(("Skill Level", "3"),)))
    assert player.about == "Fake 1"
    assert player.choose(0) == "e2e4"
    player.tell(1, "e7e5")
    assert player.choose(0) == "e2e4"
    assert player.opinion() is None
    player.close()


def test_nodes_may_be_part_of_the_name() -> None:
    player = engine.start(fake("uci", "fine").replace("uci:", "uci@7:", 1), GAME, Terms(seconds=LONG, nodes=100))
    assert isinstance(player, UciEngine)
    sent: list[str] = []
    player._send, send = lambda line: (sent.append(line), send(line))[1], player._send  # pyright: ignore
    assert player.choose(0) == "e2e4"
    assert sent[-1].startswith("go nodes 7 ")
    player.close()


@pytest.mark.parametrize(
    ("behaviour", "kind", "words"),
    [
        ("crash", "crash", "exit status 3; it said: first line / Traceback: boom"),
        ("hang", "time", "did not say bestmove within 0.5 s"),
        ("nonsense", "nonsense", "answered go with 'bestmove banana ponder e7e5'"),
        ("endless", "time", "did not say bestmove within 0.5 s"),
    ],
)
def test_what_goes_wrong_has_a_name(behaviour: str, kind: str, words: str) -> None:
    player = start(behaviour, HASTY if kind == "time" else PATIENT)
    with pytest.raises(Fault) as caught:
        player.choose(0)
    assert caught.value.kind == kind
    assert words in caught.value.words
    player.close()


def test_one_that_does_not_start() -> None:
    with pytest.raises(TengenError, match="exit status 1; it said: no licence"):
        start("stillborn")
    with pytest.raises(TengenError, match="did not say uciok within 0.3 s"):
        start("mute", Terms(patience=0.3))
    with pytest.raises(TengenError, match="has no option 'Skil'; it has skill level"):
        start("fine", Terms(options=(("Skil", "3"),)))


@needs_stockfish
def test_stockfish_finds_mate_castles_and_promotes() -> None:
    assert STOCKFISH is not None
    player = engine.start(f"uci:{shlex.quote(STOCKFISH)}", GAME, Terms(nodes=20_000, options=(("Threads", "1"),)))
    try:
        assert player.about.startswith("Stockfish")
        for number, move in enumerate(["f2f3", "e7e5", "g2g4"]):
            player.tell(number % 2, move)
        assert player.choose(1) == "d8h4"  # fool's mate
        player.begin()
        for number, move in enumerate(["h2h4", "g7g5", "h4g5", "f7f6", "g5f6", "e8f7", "f6e7", "f7g6"]):
            player.tell(number % 2, move)
        assert player.choose(0) in ("e7d8q", "e7f8q", "e7d8n", "e7f8n")
    finally:
        player.close()


@needs_stockfish
@pytest.mark.slow
def test_moves_are_called_as_stockfish_calls_them() -> None:
    """Random games with castling, promotions and captures in passing: the same moves are legal, by the same names."""
    assert STOCKFISH is not None
    game = games.make("chess")
    step, legal = jax.jit(game.step), jax.jit(game.legal_actions)
    process = Process([STOCKFISH])
    UciEngine(process, PATIENT)
    rng = np.random.default_rng(2)
    seen: set[str] = set()
    for number in range(4):
        state, moves = jax.jit(game.init)(jax.random.key(number)), []
        while not game.is_over(state) and len(moves) < 250:
            actions = np.flatnonzero(np.asarray(legal(state)))
            names = {game.action_name(state, int(action)): int(action) for action in actions}
            assert set(names) == _legal(process, moves), moves
            seen |= {name for name in names if len(name) == 5 or name in ("e1g1", "e1c1", "e8g8", "e8c8")}
            moves.append(str(rng.choice(sorted(names))))
            state = step(state, np.int32(names[moves[-1]]))
    process.close("quit")
    assert {name[4:] for name in seen} >= {"q", "r", "b", "n"}


def _legal(process: Process, moves: list[str]) -> set[str]:
    """What Stockfish allows after these moves."""
    process.send(f"position startpos moves {' '.join(moves)}", 60)
    process.send("go perft 1", 60)
    found: set[str] = set()
    while not (line := process.line(time.monotonic() + LONG, "perft")).startswith("Nodes searched"):
        name, colon, _ = line.partition(":")
        if colon and name[:1] in "abcdefgh" and len(name) in (4, 5):
            found.add(name)
    return found
