"""A session with a board that thinks as long as it is told: what is said when. And real chess, which compiles long."""

import io
import os
import queue
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tengen.commands import main
from tengen.config.settings.match import EngineSettings, PlaySettings
from tengen.engine.engine import Candidate, SearchReport
from tengen.engine.uci import session
from tengen.engine.uci.session import UciPosition, UciSession
from tengen.run.networks import FoundNetwork
from tests.helpers.networks import untrained
from tests.helpers.patience import LONG


class Slow:
    """A board whose engine thinks until it is stopped, or has enough visits."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.engine: Any = self
        self.over, self.player = False, 0
        self.now = 0.0  # on the clock of the session
        self.preparing = 0.0  # seconds before it thinks
        self.lagging = 0.0  # seconds that it thinks too long

    def set(self, fen: str | None, moves: tuple[str, ...]) -> str | None:
        self.asked.append((fen, moves))
        return "no such\nmove" if "z9" in moves else None

    def reset(self) -> None:
        self.asked.append("reset")

    def go_on(self) -> None:
        self.now += self.preparing

    def think(
        self, visits: Any = None, seconds: Any = None, stop: Any = None, each: Any = None, every: Any = None
    ) -> SearchReport:
        self.asked.append((visits, seconds))
        self.now += seconds + self.lagging if seconds is not None else 0.0
        thought = SearchReport(0, 2, 0.0, 0.1, 2, [Candidate(5, 1, 0.0, 0.5, (5, 6))], 2)
        if visits == 13:
            raise RuntimeError("thirteen")
        if each is not None:
            each(thought)
        while (visits is None or visits > 1000) and not stop.is_set():
            time.sleep(0.005)
        return thought

    def names(self, actions: tuple[int, ...]) -> list[str]:
        return [f"m{action}" for action in actions]

    def name(self, action: int) -> str:
        return f"m{action}"

    def legal(self) -> list[int]:
        return [5, 6, 7]


class Program:
    """A chess program for tests."""

    def __init__(self, make: Callable[[], Any], play: PlaySettings, clock: Callable[[], float] = lambda: 0.0) -> None:
        self._to: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._from: queue.SimpleQueue[str] = queue.SimpleQueue()
        running = UciSession(["id name x"], make, play, iter(self._to.get, None), self._put, clock)
        self.thread = threading.Thread(target=running.run, daemon=True)
        self.thread.start()

    def _put(self, text: str) -> None:
        for line in text.splitlines():
            self._from.put(line)

    def send(self, *lines: str) -> None:
        for line in lines:
            self._to.put(line.encode() + b"\n")

    def until(self, word: str) -> list[str]:
        """All lines up to the first that begins so."""
        lines = []
        while not lines or not lines[-1].startswith(word):
            lines.append(self._from.get(timeout=LONG))
        return lines

    def silent(self) -> bool:
        return self._from.empty()

    def end(self) -> None:
        self._to.put(None)
        self.thread.join(timeout=LONG)
        assert not self.thread.is_alive()


@pytest.fixture
def slow() -> Iterator[tuple[Program, Slow]]:
    board = Slow()
    program = Program(lambda: board, PlaySettings(visits=77), lambda: board.now)
    yield program, board
    program.end()


def test_greetings_come_before_the_network(slow: tuple[Program, Slow]) -> None:
    made: list[int] = []
    program = Program(lambda: made.append(1) or Slow(), PlaySettings())  # pyright: ignore
    program.send("uci")
    lines = program.until("uciok")
    assert lines[0] == "id name x"
    assert any(line.startswith("option name MultiPV ") for line in lines)
    assert not made
    program.send("isready")
    assert program.until("readyok") == ["readyok"]
    assert made
    program.end()


def test_infinite_waits_for_stop_and_answers_meanwhile(slow: tuple[Program, Slow]) -> None:
    program, _ = slow
    program.send("position startpos moves e2e4", "go infinite")
    program.until("info depth")
    program.send("isready")
    assert program.until("readyok")[-1] == "readyok"
    assert program.silent()
    program.send("stop")
    assert program.until("bestmove")[-1] == "bestmove m5 ponder m6"
    program.send("stop", "isready")  # stopping twice says nothing
    assert program.until("readyok") == ["readyok"]


def test_limits(slow: tuple[Program, Slow]) -> None:
    program, board = slow
    for line, wanted in (
        ("go nodes 40", (40, None)),
        ("go", (77, None)),
        ("go depth 9", (77, None)),
        ("go nodes 9 movetime 1100", (9, 1.0)),
    ):
        program.send(line)
        program.until("bestmove")
        assert board.asked[-1] == pytest.approx(wanted)


def test_the_time_runs_from_the_arrival_of_go(slow: tuple[Program, Slow]) -> None:
    program, board = slow
    board.preparing = 0.25
    for line, seconds in (("go nodes 9 movetime 1100", 0.75), ("go nodes 9 movetime 200", 0.0)):
        program.send(line)
        program.until("bestmove")
        assert board.asked[-1] == pytest.approx((9, seconds))


def test_the_clock_runs_while_the_lines_before_are_answered() -> None:
    ready = threading.Event()

    class Waiting(Slow):
        def set(self, fen: str | None, moves: tuple[str, ...]) -> str | None:
            assert ready.wait(LONG)
            return super().set(fen, moves)

    board = Waiting()

    def lines() -> Iterator[bytes]:
        yield b"position startpos moves e2e4\n"
        yield b"go nodes 9 movetime 1100\n"
        board.now += 0.4  # `go` has arrived
        ready.set()

    UciSession([], lambda: board, PlaySettings(), lines(), lambda text: None, lambda: board.now).run()  # pyright: ignore
    assert board.asked[-1] == pytest.approx((9, 0.6))


def test_moves_that_were_late_leave_a_margin(slow: tuple[Program, Slow]) -> None:
    program, board = slow
    board.lagging = 0.3
    program.send("go nodes 9 movetime 1100")
    program.until("bestmove")
    board.lagging = 0.0
    for planned in (0.7, 0.85):  # the next moves are on time, and the margin shrinks
        program.send("go nodes 9 movetime 1100")
        program.until("bestmove")
        assert board.asked[-1] == pytest.approx((9, planned))


def test_the_time_of_pondering_is_the_opponents(slow: tuple[Program, Slow]) -> None:
    program, board = slow
    program.send("go ponder nodes 9 movetime 1100")
    program.until("info depth")
    board.now += 60
    program.send("ponderhit")
    program.until("bestmove")
    assert board.asked[-1] == pytest.approx((9, 1.0))


def test_pondering(slow: tuple[Program, Slow]) -> None:
    program, board = slow
    program.send("go ponder nodes 8")
    program.until("info depth")
    assert program.silent()
    program.send("ponderhit")
    program.until("bestmove")
    assert board.asked[-1] == (8, None)
    program.send("go ponder nodes 8", "stop")
    program.until("bestmove")


def test_a_new_position_ends_the_search(slow: tuple[Program, Slow]) -> None:
    program, board = slow
    program.send("go infinite", "position startpos moves d2d4", "isready")
    lines = program.until("readyok")
    assert len([line for line in lines if line.startswith("bestmove")]) == 1
    assert board.asked[-1] == (None, ("d2d4",))


def test_mistakes_are_said_and_the_session_goes_on(slow: tuple[Program, Slow]) -> None:
    program, _ = slow
    program.send("position startpos moves z9", "position", "setoption name Hash value 5", "setoption", "\x00 nonsense")
    program.send("isready")
    lines = program.until("readyok")
    assert len(lines) == 5
    assert lines[0] == "info string no such move"
    assert all(line.startswith("info string ") for line in lines[:-1])
    program.send("go nodes 13")  # the engine fails: there is a move all the same
    assert program.until("bestmove")[-1] == "bestmove m5"


def test_searchmoves(slow: tuple[Program, Slow]) -> None:
    program, _ = slow
    program.send("go nodes 5 searchmoves m7 m6")  # which the search has not looked at
    assert program.until("bestmove")[-1].split()[1] in ("m6", "m7")
    program.send("go nodes 5 searchmoves m5")
    assert program.until("bestmove")[-1].split()[1] == "m5"
    program.send("go nodes 5 searchmoves zz")
    assert program.until("bestmove")[-1].split()[1] == "m5"


def test_new_game_and_quit(slow: tuple[Program, Slow]) -> None:
    program, board = slow
    program.send("ucinewgame", "go infinite", "quit")
    program.thread.join(timeout=LONG)
    assert not program.thread.is_alive()
    assert "reset" in board.asked


def test_lines_from_a_file_get_their_last_answer() -> None:
    said: list[str] = []
    UciSession([], Slow, PlaySettings(), io.BytesIO(b"position startpos\ngo nodes 5"), said.append).run()  # pyright: ignore
    assert said[-1] == "bestmove m5 ponder m6\n"
    UciSession([], Slow, PlaySettings(), io.BytesIO(b"go infinite\n"), said.append).run()  # pyright: ignore
    assert said[-1] == "bestmove m5 ponder m6\n"


_STANDARD = """
from types import SimpleNamespace
from tests.engine.uci.test_session import Slow
from tengen.config.settings.match import EngineSettings, PlaySettings
from tengen.engine.uci import session
session.find = lambda net: SimpleNamespace(name=net)
session.make = lambda found, settings: Slow()
session.serve("net", PlaySettings(), EngineSettings())
"""


@pytest.mark.parametrize("commands", ["isready", "go infinite"])
def test_quit_ends_it_while_the_program_keeps_its_input_open(commands: str) -> None:
    """Chess programs close the pipe after the engine has ended, if at all."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", _STANDARD], stdin=pipe, stdout=pipe, stderr=pipe, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(f"{commands}\nquit\n".encode())
        process.stdin.flush()
        said = process.stdout.read().decode()
        complaints = process.stderr.read().decode()
        assert process.wait(timeout=LONG) == 0, complaints
    assert said.endswith("readyok\n" if commands == "isready" else "bestmove m5 ponder m6\n")
    assert "Fatal" not in complaints


def test_other_games_are_told_of_gtp(noughts: FoundNetwork, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["uci", str(noughts.path)]) == 2
    assert "tengen gtp" in capsys.readouterr().err


# --- Real chess -----------------------------------------------------------------------------------------------

QUICK = EngineSettings(visits=8, leaves=2, slots=64)
STALEMATE = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"
MATED = "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"


@pytest.fixture(scope="module")
def chess_net(tmp_path_factory: pytest.TempPathFactory) -> FoundNetwork:
    return untrained(tmp_path_factory.mktemp("nets") / "chess", "chess")


@pytest.fixture(scope="module")
def board(chess_net: FoundNetwork) -> UciPosition:
    return session.make(chess_net, QUICK)


@pytest.mark.slow
def test_positions_follow_one_another(board: UciPosition) -> None:
    assert board.set(None, ("e2e4", "e7e5")) is None
    board.engine.think(visits=8)
    visits = int(board.engine.tree.visits[0, board.engine.tree.root[0]])
    assert visits >= 8
    best = board.engine.think(visits=8).candidates[0]
    assert board.set(None, ("e2e4", "e7e5", board.name(best.action))) is None
    assert len(board.engine.actions) == 3  # played on, not set up again
    assert "e9e5" in (board.set(None, ("d2d4", "e9e5", "c2c4")) or "")
    assert board.engine.actions == (board.game.parse_action(board.game.init(_key()), "d2d4"),)
    assert board.set("8/8/8/8/8/8/8/8 w - - 0 1", ()) is not None
    assert len(board.engine.actions) == 1  # as it was


def _key() -> Any:
    import jax

    return jax.random.key(0)


@pytest.mark.slow
def test_a_game_goes_on_after_a_repetition(board: UciPosition) -> None:
    there_and_back = ("g1f3", "g8f6", "f3g1", "f6g8")
    assert board.set(None, there_and_back * 4) is None
    board.go_on()
    assert not board.engine.over
    assert board.set("8/8/4k3/8/8/4K3/8/R7 w - - 99 80", ("a1a2", "e6d6", "a2a3")) is None  # fifty moves are over


@pytest.mark.slow
def test_real_answers(board: UciPosition) -> None:
    program = Program(lambda: board, PlaySettings(visits=8))
    for fen, answer in ((STALEMATE, "bestmove (none)"), (MATED, "bestmove (none)")):
        program.send(f"position fen {fen}", "go nodes 4")
        assert program.until("bestmove")[-1] == answer
    program.send("position fen 7k/8/5K2/8/8/8/8/8 w - - 0 1", "go nodes 4")  # a draw, but there are moves
    assert program.until("bestmove")[-1].startswith("bestmove f6")
    program.send("setoption name UCI_ShowWDL value true", "setoption name MultiPV value 3")
    program.send("position startpos moves e2e4", "go nodes 12")
    lines = program.until("bestmove")
    info = [line for line in lines if line.startswith("info depth")][-3:]
    assert [line.split()[4] for line in info] == ["1", "2", "3"]
    assert all(" wdl " in line and " score cp " in line and " pv " in line for line in info)
    assert lines[-1].split()[1] == info[0].split(" pv ")[1].split()[0]
    program.end()


@pytest.mark.slow
def test_python_chess_knows_the_same_moves(board: UciPosition) -> None:
    """Positions of random games, by FEN or moves: castling, promotions and pawns taken in passing among them."""
    chess = pytest.importorskip("chess", reason="python-chess is not installed")
    rng, kinds = random.Random(1), set()
    for number in range(12):
        other = chess.Board()
        for _ in range(rng.randrange(10, 120)):
            if other.is_game_over():
                break
            moves = list(other.legal_moves)
            special = [move for move in moves if move.promotion or other.is_castling(move) or other.is_en_passant(move)]
            move = rng.choice(special or moves)
            kinds |= {
                move.promotion,
                other.is_castling(move) and "castles",
                other.is_en_passant(move) and "passes",
            }
            other.push(move)
        moves = tuple(move.uci() for move in other.move_stack)
        assert board.set(None, moves) is None if number % 2 else board.set(other.fen(), ()) is None
        board.go_on()
        assert {board.name(action) for action in board.legal()} == {move.uci() for move in other.legal_moves}
    assert {"castles", "passes", chess.QUEEN, chess.KNIGHT} <= kinds


@pytest.mark.slow
def test_an_independent_client_plays_a_game(chess_net: FoundNetwork) -> None:
    """python-chess raises for every move that is not legal, and for lines that it cannot read."""
    chess = pytest.importorskip("chess", reason="python-chess is not installed")
    from chess import engine as client

    command = [sys.executable, "-m", "tengen", "uci", str(chess_net.path), "--leaves", "2", "--slots", "64"]
    with client.SimpleEngine.popen_uci(
        command, timeout=LONG, stderr=subprocess.DEVNULL, env=dict(os.environ)
    ) as engine:
        assert "Tengen" in engine.id["name"]
        board = chess.Board()
        for number in range(16):
            limit = client.Limit(nodes=6) if number % 2 else client.Limit(white_clock=5, black_clock=5, white_inc=0.1)
            played = engine.play(board, limit, info=client.INFO_ALL, ponder=number % 3 > 0)
            assert played.move in board.legal_moves
            assert "score" in played.info
            board.push(played.move)
        found = engine.analyse(chess.Board("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"), client.Limit(nodes=6), multipv=3)
        assert [line.get("multipv") for line in found] == [1, 2, 3]
        promotes = chess.Board("8/P6k/8/8/8/8/8/K7 w - - 0 1")
        played = engine.play(promotes, client.Limit(nodes=6), root_moves=[chess.Move.from_uci("a7a8n")])
        assert played.move == chess.Move.from_uci("a7a8n")


@pytest.mark.slow
def test_a_damaged_network_is_named(
    chess_net: FoundNetwork, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes((chess_net.path / "model.safetensors").read_bytes()[:-5])
    assert main(["uci", str(file)]) == 2
    assert "model.safetensors" in capsys.readouterr().err
