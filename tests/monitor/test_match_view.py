"""What a person sees of a match."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from tengen.match.device_match import MatchStanding
from tengen.match.match_games import MatchFolder, PlayedGame
from tengen.monitor.display import TerminalDisplay
from tengen.monitor.match_view import MatchView, watching


def book(tmp_path: Path, name: str = "net") -> MatchFolder:
    return MatchFolder(tmp_path, (name, "gnugo"), 10, {})


def test_the_line_tells_how_it_stands(tmp_path: Path) -> None:
    now = 100.0
    kept = book(tmp_path, "a name that is far longer than a line should have")
    watch = MatchView(kept, lambda: now)
    assert watch.line() == "0 of 10 games, starting, 00:00:00"
    now = 160.0
    kept.add(PlayedGame(0, (1, 2), 0, (0, 0), 1.0), PlayedGame(1, (1, 2), 0, (0, 0), 0.0))
    watch.update(MatchStanding(2, 4, 120, compiling=True))
    assert ", 4 under way, 120 moves, compiling, 00:01:00" in watch.line()
    watch.update(MatchStanding(2, 4, 123))
    assert watch.line() == (
        "2 of 10 games, a name that is far lo... 75.0 % (+1 =1 -0), 4 under way, 123 moves, 00:01:00, 00:04:00 left"
    )


def test_games_that_ended_in_a_round_count_before_it_is_kept(tmp_path: Path) -> None:
    now = 0.0
    watch = MatchView(book(tmp_path), lambda: now)
    now = 30.0
    watch.update(MatchStanding(3, 5, 70))
    assert watch.line() == "3 of 10 games, 5 under way, 70 moves, 00:00:30"


def test_plain_lines_come_now_and_then(tmp_path: Path) -> None:
    now, lines = 0.0, []
    watch = MatchView(book(tmp_path), lambda: now)
    assert list(watch.lines()) == [], "nothing is known yet"
    for now in (0.0, 1.0, 9.0, 10.0, 11.0, 25.0):
        watch.update(MatchStanding(0, 1, int(now)))
        lines += watch.lines()
    assert [line.split(", ")[1:3] for line in lines] == [["1 under way", f"{moves} moves"] for moves in (0, 10, 25)]


def test_a_terminal_has_one_line_that_changes(tmp_path: Path) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    with TerminalDisplay(MatchView(book(tmp_path)), console, transient=True) as watch:
        watch.update(MatchStanding(0, 3, 17))
        watch.say("a word [in] brackets")
        watch.tick()
    assert "a word [in] brackets" in screen.getvalue()
    assert "3 under way, 17 moves" in screen.getvalue()


def test_without_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with watching(book(tmp_path)) as watch:
        watch.update(MatchStanding(0, 1, 0))
    assert capsys.readouterr().out.startswith("0 of 10 games, 1 under way")
