"""Lines of chess programs, whole and broken; options; what is said of a search."""

import pytest

from tengen.engine.engine import Candidate, SearchReport
from tengen.engine.uci import session
from tengen.engine.uci.protocol import (
    COMMANDS,
    UciCommand,
    UciGo,
    UciOptions,
    parse,
    parse_go,
    parse_option,
    parse_position,
)


def test_what_is_not_understood_is_passed_over() -> None:
    assert parse("joho debug on") == UciCommand("debug", ("on",))  # the specification's own example
    assert parse("  go   movetime\t100 \r\n") == UciCommand("go", ("movetime", "100"))
    for line in ("", "   ", "debugon", "GO", "\x00\xff", "e2e4", "�"):
        assert parse(line) is None
    for name in COMMANDS:
        assert parse(name) == UciCommand(name, ())


def test_positions() -> None:
    start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 3 7"
    assert parse_position(("startpos",)) == (None, ())
    assert parse_position(("startpos", "moves")) == (None, ())
    assert parse_position(("startpos", "moves", "e2e4", "e7e5")) == (None, ("e2e4", "e7e5"))
    assert parse_position(("fen", *start.split(), "moves", "a2a3")) == (start, ("a2a3",))
    assert parse_position(("fen", *start.split()[:4]))[0] == start.replace("3 7", "0 1")
    assert parse_position(("fen", *start.split()[:5]))[0] == start.replace("3 7", "3 1")
    for words in ((), ("moves", "e2e4"), ("fen",), ("fen", "8/8"), ("fen", *start.split(), "x"), ("somewhere",)):
        with pytest.raises(ValueError, match="FEN"):
            parse_position(words)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("", UciGo()),
        ("infinite", UciGo(infinite=True)),
        ("movetime 1500", UciGo(seconds=1.5)),
        ("nodes 100 joho movetime 20", UciGo(nodes=100, seconds=0.02)),
        ("nodes 0", UciGo(nodes=1)),
        ("depth 8 mate 3", UciGo()),
        ("wtime 60000 btime -5 winc 1000 movestogo 10", UciGo((60.0, 0.0), (1.0, 0.0), 10)),
        ("ponder wtime 1000 btime 2000", UciGo((1.0, 2.0), ponder=True)),
        ("searchmoves e2e4 D2D4 nodes 5", UciGo(nodes=5, moves=("e2e4", "d2d4"))),
        ("wtime btime 5", UciGo((None, 0.005))),
        ("movetime nan nodes inf wtime 1e99 movestogo 0 nodes", UciGo()),
    ],
)
def test_go(line: str, wanted: UciGo) -> None:
    assert parse_go(tuple(line.split())) == wanted


def limit(go: UciGo, player: int, overhead: float) -> float:
    found = go.limit(player, overhead)
    assert found is not None
    return found


def test_time_is_shared_out() -> None:
    assert UciGo().limit(0, 0.1) is None
    assert UciGo(seconds=1.0).limit(0, 0.1) == pytest.approx(0.9)
    assert limit(UciGo(seconds=0.05), 0, 0.1) == pytest.approx(0.025)
    assert limit(UciGo(seconds=1.0), 0, 10.0) == pytest.approx(0.5), "however late moves have been"
    assert limit(UciGo(clock=(6.0, 6.0)), 0, 10.0) == pytest.approx(limit(UciGo(clock=(3.0, 3.0)), 0, 0.0))
    clock = UciGo(clock=(60.0, 30.0))
    assert limit(clock, 0, 0.0) == pytest.approx(2 * limit(clock, 1, 0.0))
    assert limit(UciGo(clock=(60.0, 60.0), increment=(2.0, 0.0)), 0, 0.0) > limit(clock, 0, 0.0) + 1
    assert limit(UciGo(clock=(60.0, 60.0), moves_to_go=1), 0, 0.0) > 30
    for left in (0.0, 0.01, 0.1, 1.0, 10.0, 1000.0):  # never more than there is, but for the last hundredth
        for increment in (0.0, 1.0, 100.0):
            for to_go in (None, 1, 2, 40, 10**6):
                assert 0 < limit(UciGo((left, left), (increment, increment), to_go), 0, 0.0) <= max(0.9 * left, 0.01)


def test_a_game_by_the_clock_is_not_lost_on_time() -> None:
    """A hundred moves, each a little longer than allowed."""
    for seconds, increment in ((60.0, 0.0), (10.0, 0.1), (1.0, 0.2)):
        left = seconds
        for _ in range(100):
            left -= limit(UciGo((left, left), (increment, increment)), 0, 0.1) + 0.05
            assert left > 0
            left += increment + (0.05 if left < 0.3 else 0)


def test_options() -> None:
    assert parse_option(("name", "Move", "Overhead", "value", "50")) == ("Move Overhead", "50")
    assert parse_option(("name", "Clear")) == ("Clear", "")
    for words in ((), ("value", "5"), ("name",), ("name", "value", "5")):
        with pytest.raises(ValueError, match="setoption"):
            parse_option(words)
    options = UciOptions().changed("MULTIPV", "3").changed("UCI_ShowWDL", "True").changed("move overhead", "5")
    assert options == UciOptions(3, True, 5)
    assert options.changed("Ponder", "true") == options
    wrong = [("MultiPV", "0"), ("MultiPV", "many"), ("MultiPV", "9" * 5000), ("UCI_ShowWDL", "yes"), ("Hash", "16")]
    for name, value in [*wrong, ("Ponder", "")]:
        with pytest.raises(ValueError, match=name):
            options.changed(name, value)
    for line in UciOptions().declared():
        assert line.split()[:2] == ["option", "name"]


def test_scores() -> None:
    assert [session.centipawns(value) for value in (0, 0.5, -0.5, 1, -1, 7)] == [0, 89, -89, 12780, -12780, 12780]
    for value in (-1.0, -0.3, 0.0, 0.9, 1.0):
        for draw in (-0.1, 0.0, 0.4, 1.0):
            win, drawn, loss = session.chances(value, draw)
            assert win + drawn + loss == 1000
            assert min(win, drawn, loss) >= 0
            assert (win - loss) / 1000 == pytest.approx(value, abs=0.002)


def test_lines_of_a_search() -> None:
    best, other = Candidate(1, 30, 0.5, 0.4, (1, 2)), Candidate(3, 9, -0.5, 0.1, (3,))
    thought = SearchReport(0, 40, 0.3, 2.0, 100, [best, other], 41)
    names = lambda one: [f"m{action}" for action in one.line]  # noqa: E731
    assert session.info_lines(thought, [best, other], 0.0, UciOptions(), names) == [
        "info depth 2 score cp 89 nodes 40 nps 50 time 2000 pv m1 m2"
    ]
    two = session.info_lines(thought, [best, other], 0.5, UciOptions(2, True), names)
    assert two == [
        "info depth 2 multipv 1 score cp 89 wdl 500 500 0 nodes 40 nps 50 time 2000 pv m1 m2",
        "info depth 1 multipv 2 score cp -89 wdl 0 500 500 nodes 40 nps 50 time 2000 pv m3",
    ]
