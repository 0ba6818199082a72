"""Positions that follow one another, with an engine that only keeps them."""

from typing import Any

import pytest

from tengen.engine.position import PositionStep
from tengen.engine.uci.session import UciPosition
from tengen.games.chess import Chess
from tests.helpers.game_recording import make

START = "fen: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
BACK_AND_FORTH = ("g1f3", "g8f6", "f3g1", "f6g8")


class Keeping:
    """An engine without a tree."""

    def __init__(self) -> None:
        self.game = make("chess")
        self.steps: list[PositionStep] = []
        self.played: list[str] = []
        self.reset()

    @property
    def state(self) -> Any:
        return self.steps[-1].state

    @property
    def over(self) -> bool:
        return bool(self.game.is_over(self.state))

    def reset(self, state: Any = None) -> None:
        self.steps = [PositionStep(self.game.from_text(START) if state is None else state, None)]

    def play(self, action: int) -> None:
        assert isinstance(self.game, Chess)
        self.played.append(self.game.action_name(self.state, action))
        self.steps.append(PositionStep(self.game.after(self.game.moment(self.state), action).state, action))

    def put(self, state: Any) -> None:
        self.steps.append(PositionStep(state, None))

    def rewind(self, length: int) -> None:
        del self.steps[length:]


@pytest.fixture(scope="module")
def engine() -> Keeping:
    return Keeping()


def played(engine: Keeping, moves: tuple[str, ...]) -> list[str]:
    """The moves that the engine makes to get there."""
    board = UciPosition(engine)  # type: ignore[arg-type]
    engine.reset()
    assert board.set(None, ("e2e4", "e7e5", "g1f3", "b8c6")) is None
    engine.played.clear()
    assert board.set(None, moves) is None
    assert [step.action is not None for step in engine.steps] == [False, *[True] * len(moves)]
    return list(engine.played)


@pytest.mark.parametrize(
    ("moves", "wanted"),
    [
        (("e2e4", "e7e5", "g1f3", "b8c6"), []),
        (("e2e4", "e7e5", "g1f3", "b8c6", "f1b5"), ["f1b5"]),
        (("e2e4", "e7e5", "g1f3", "g8f6", "d2d4"), ["g8f6", "d2d4"]),  # something else was pondered on
        (("e2e4", "e7e5"), []),  # taken back
        ((), []),
        (("d2d4",), ["d2d4"]),
    ],
)
def test_only_new_moves_are_made(engine: Keeping, moves: tuple[str, ...], wanted: list[str]) -> None:
    assert played(engine, moves) == wanted


def test_moves_are_taken_back_where_a_drawn_game_went_on(engine: Keeping) -> None:
    board = UciPosition(engine)  # type: ignore[arg-type]
    engine.reset()
    assert board.set(None, (*BACK_AND_FORTH * 2, "e2e4", "e7e5")) is None  # drawn by repetition before e2e4
    board.go_on()
    assert board.set(None, (*BACK_AND_FORTH * 2, "d2d4")) is None
    assert engine.played[-1] == "d2d4"
    assert int(engine.state.ply) == 9


def test_an_impossible_position_changes_nothing(engine: Keeping) -> None:
    board = UciPosition(engine)  # type: ignore[arg-type]
    engine.reset()
    assert board.set(None, ("e2e4",)) is None
    assert board.set("8/8/8/8/8/8/8/8 w - - 0 1", ("a2a3",)) is not None
    assert "e9e5" in (board.set(None, ("e2e4", "e9e5", "d2d4")) or "")
    engine.played.clear()
    assert board.set(None, ("e2e4", "e7e5")) is None
    assert engine.played == ["e7e5"]
