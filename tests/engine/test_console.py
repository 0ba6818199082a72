"""A person at the board: what is typed, and what is shown."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tengen.config.settings.match import PlaySettings
from tengen.data.records.moves import replay
from tengen.data.records.records import load_records
from tengen.engine.console import Console
from tengen.engine.engine import Engine
from tengen.run.networks import FoundNetwork
from tests.helpers.networks import QUICK, untrained


@pytest.fixture(scope="module")
def engine(noughts: FoundNetwork) -> Engine:
    return Engine(noughts, settings=QUICK)


def _play(engine: Engine, lines: Iterable[str], seat: int = 0) -> str:
    """What is shown when these lines are typed, then the end of the input."""
    shown: list[str] = []
    typed = iter(lines)

    def read(prompt: str) -> str:
        shown.append(prompt)
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    Console(engine, PlaySettings(visits=30), seat, read, shown.append, seed=1).run()
    return "\n".join(shown)


def test_a_game_with_mistakes_on_the_way(engine: Engine) -> None:
    shown = _play(engine, ["", "zz", "b2", "b2", "help", "moves", "hint"])
    assert "no move is called 'zz'" in shown
    assert "a1, b1, c1" in shown  # legal examples
    assert "that move is not legal here" in shown
    assert "noughts plays" in shown
    assert "% engine" in shown
    assert "2 . x" in shown or "2 o x" in shown
    assert "visits" in shown  # the hint
    assert shown.endswith("Goodbye.")


def test_quit_and_interrupt_end_it(engine: Engine) -> None:
    for word in ("quit", "Q", "exit"):
        assert _play(engine, [word, "a1"]).endswith("Goodbye.")

    def interrupted(prompt: str) -> str:
        raise KeyboardInterrupt

    shown: list[str] = []
    Console(engine, PlaySettings(visits=4), 0, interrupted, shown.append).run()
    assert shown[-1] == "Goodbye."


def test_undo_goes_back_to_the_persons_choice(engine: Engine) -> None:
    _play(engine, ["undo"])
    shown = _play(engine, ["undo", "a1", "undo"])
    assert "There is nothing to take back." in shown
    assert engine.actions == ()
    _play(engine, ["undo"], seat=1)
    assert len(engine.actions) == 1  # the engine's first move is not the person's to take back
    _play(engine, ["resign", "undo"])
    assert engine.actions == ()


def test_to_the_end_and_again(engine: Engine) -> None:
    shown = _play(engine, ["a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3", "hint", "a1", "new", "b2"])
    ends = ("wins.", "You win!", "A draw.")
    assert any(end in shown for end in ends)
    assert "The game is over" in shown
    assert len(engine.actions) == 2  # of the new game


def test_resigning(engine: Engine, tmp_path: Path) -> None:
    shown = _play(engine, ["a1", "resign", "resign", f"save {tmp_path}/lost"])
    assert "You resign; noughts wins." in shown
    (record,) = load_records(tmp_path / "lost.txt")
    assert (record.result, record.ending, record.players) == (-1.0, "resigned", ("you", "noughts"))


def test_games_are_saved_whole(engine: Engine, tmp_path: Path) -> None:
    shown = _play(engine, ["b2", "save", f"save {tmp_path / 'game.txt'}", f"save {tmp_path}/game.txt/no"], seat=1)
    assert "Say where" in shown
    assert "cannot be saved" in shown
    (record,) = load_records(tmp_path / "game.txt")
    assert record.actions == engine.actions[: len(record.actions)]
    assert record.values[0] is not None


@pytest.mark.slow
def test_go_is_saved_as_sgf(go5: FoundNetwork, tmp_path: Path) -> None:
    go = Engine(go5, settings=QUICK)
    assert "Saved to" in _play(go, ["c3", "pass", f"save {tmp_path}/game"])
    (record,) = load_records(tmp_path / "game.sgf")
    assert record.game == "go"
    assert record.actions[0] == 12
    assert len(list(replay(record))) == len(record.actions) + 1


@pytest.mark.slow
@pytest.mark.parametrize(("game", "net"), [("connect_four", "b1c8"), ("hironaka", "mlp1x8")])
def test_other_games(game: str, net: str, tmp_path: Path) -> None:
    engine = Engine(untrained(tmp_path / "net", game, net), settings=QUICK)
    for seat in (0, 1):
        shown = _play(engine, ["moves", "nonsense", f"save {tmp_path}/{game}{seat}"], seat)
        assert "no move is called 'nonsense'" in shown
        (record,) = load_records(tmp_path / f"{game}{seat}.txt")
        assert len(list(replay(record))) == seat + 1
