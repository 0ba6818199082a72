"""Games that are broken on purpose, and what `check_game` says about them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from tengen import games
from tengen.errors import OptionError
from tengen.games.core import Game, Observation, Symmetry, square_symmetries
from tengen.games.targets import OWNERSHIP, Target
from tengen.games.text import point_name
from tengen.games.tic_tac_toe import TicTacToe, TicTacToeState
from tengen.schema import setting
from tengen.testing import check_game
from tests.helpers.every_target import EveryTarget

HERE = Path(__file__).name


class WrongDtype(TicTacToe):
    def returns(self, state):
        return super().returns(state).astype(jnp.int32)


class WrongPlanes(TicTacToe):
    planes_shape = (3, 3, 4)


class ChangesState(TicTacToe):
    def _play(self, state, action):
        return super()._play(state, action)._replace(turn=(1 - state.turn).astype(jnp.int32))


class Raises(TicTacToe):
    def observe(self, state):
        return Observation(jnp.ones(self.planes_shape, bool), state.missing)


class UsesIf(TicTacToe):
    def legal_actions(self, state):
        if state.turn == 0:
            return jnp.ones(9, bool)
        return jnp.zeros(9, bool)


class NotANumber(TicTacToe):
    num_scalars = 1

    def observe(self, state):
        seen = super().observe(state)
        return seen._replace(scalars=jnp.log(seen.planes[..., 1].sum().astype(jnp.float32)[None] - 2))


class NotZeroSum(TicTacToe):
    def returns(self, state):
        return self._has_line(state).astype(jnp.float32)


class RewardsEarly(TicTacToe):
    def returns(self, state):
        lead = (state.stones[0] != 0).astype(jnp.float32)
        return jnp.stack([lead, -lead])


class TooFewMoves(TicTacToe):
    max_moves = 4


class LegalAtTheEnd(TicTacToe):
    def legal_actions(self, state):
        return super().legal_actions(state) | self.is_over(state)


class NeverLegal(TicTacToe):
    def legal_actions(self, state):
        return super().legal_actions(state) & (state.stones[1] == 0)


class MovesAfterTheEnd(TicTacToe):
    def step(self, state, action):
        return self._play(state, action)


class NoBoardPlane(TicTacToe):
    def observe(self, state):
        seen = super().observe(state)
        return seen._replace(planes=seen.planes.at[0, 0, 0].set(False))


class SecondPlayerFirst(TicTacToe):
    def to_play(self, state):
        return 1 - super().to_play(state)


class Impure(TicTacToe):
    calls = 0

    def returns(self, state):
        self.calls += 1
        return super().returns(state) * min(self.calls, 1000) / min(self.calls, 1000) + 0 * self.calls


class WrongSymmetry(TicTacToe):
    @cached_property
    def symmetries(self):
        first, *others = square_symmetries(3, 9)
        left_right, top_bottom = others[3:5]
        return first, Symmetry(left_right.name, top_bottom.board, left_right.scalars, left_right.actions)


class HalfAGroup(TicTacToe):
    @cached_property
    def symmetries(self):
        return square_symmetries(3, 9)[:2]


class SameNames(TicTacToe):
    def _action_name(self, state, action):
        return point_name(action // 2, 3)


class NameRaises(TicTacToe):
    def _action_name(self, state, action):
        return {0: "a1"}[action]


class ForgetsTheTurn(TicTacToe):
    def from_text(self, text):
        return super().from_text(text)._replace(turn=jnp.int8(0))


class AcceptsGarbage(TicTacToe):
    def from_text(self, text):
        try:
            return super().from_text(text)
        except ValueError:
            return self.init(jax.random.key(0))


class RendersNothing(TicTacToe):
    def render(self, state) -> Any:
        return None


class PrintsOtherSigns(TicTacToe):
    def render(self, state) -> Any:
        return super().render(state).replace(".", "-")


class BadSplit(TicTacToe):
    def join(self, node, kept):
        return node._replace(stones=node.stones[::-1])


class OtherLook(TicTacToe):
    def look(self, state):
        return super().look(state)._replace(returns=jnp.zeros(2))


class NoTargets(TicTacToe):
    extra_targets = (OWNERSHIP,)


class TargetBeyondItsRange(TicTacToe):
    extra_targets = (OWNERSHIP,)

    def final_targets(self, state):
        return {"ownership": jnp.full((3, 3), 3, jnp.int8)}


class TargetThatDoesNotTurn(TicTacToe):
    extra_targets = (OWNERSHIP,)

    def final_targets(self, state):
        return {"ownership": jnp.zeros((3, 3), jnp.int8).at[0].set(1)}


def _bad_loss(output: Any, target: Any) -> Any:
    return (output - target).sum()


class BadLoss(TicTacToe):
    extra_targets = (Target("filled", "point", loss=_bad_loss),)

    def final_targets(self, state):
        return {"filled": jnp.zeros((3, 3))}


@dataclass(frozen=True)
class BadOptions:
    size: set = setting(3, "not a type for settings")


class UndeclaredOptions(TicTacToe):
    Options = BadOptions


class OtherStructure(TicTacToe):
    def _play(self, state, action) -> Any:
        return tuple(super()._play(state, action))


class Exits(TicTacToe):
    def observe(self, state):
        raise SystemExit(3)


class OtherShapeLater(TicTacToe):
    """Good while it is looked at for the first time, and no longer when a search compiles it."""

    calls = 0

    def observe(self, state):
        self.calls += 1
        seen = super().observe(state)
        return seen if self.calls <= 3 else seen._replace(planes=seen.planes[1:])


def _loss_of_three(outputs, targets):
    return ((outputs - targets) ** 2).mean((1, 2))[:3]


def _loss_not_finite(outputs, targets):
    return jnp.log(outputs - targets - 100).mean((1, 2))


class LossOfThreeRows(TicTacToe):
    extra_targets = (Target("filled", "point", loss=_loss_of_three),)

    def final_targets(self, state):
        return {"filled": jnp.ones((3, 3))}


class LossNotFinite(LossOfThreeRows):
    extra_targets = (Target("filled", "point", loss=_loss_not_finite, sides="same"),)


BROKEN: list[tuple[Callable[..., Any], str, str]] = [  # the game, the method, what is said
    (WrongDtype, "returns", r"expected float32\[2\], got int32\[2\]"),
    (WrongPlanes, "observe", r"planes: .*|cannot reshape"),
    (ChangesState, "_play", r"state\.turn: expected int8\[\] as init gives it, got int32\[\]|TypeCheckError"),
    (Raises, "observe", "AttributeError: .*missing"),
    (UsesIf, "legal_actions", "cannot use if, int\\(\\) or NumPy"),
    (NotANumber, "observe", "expected finite scalars, got"),
    (NotZeroSum, "returns", "expected two numbers that cancel, got"),
    (RewardsEarly, "returns", r"after 1 move \(\w\d\): expected zeros, since the game runs, got \[ 1. -1.\]"),
    (TooFewMoves, "is_over", "after 4 moves .*: expected the end after max_moves, 4"),
    (LegalAtTheEnd, "legal_actions", "expected no legal action, since the game is over, got 9 of them"),
    (NeverLegal, "legal_actions", "after 2 moves .*: expected a legal action, since the game runs, got none"),
    (MovesAfterTheEnd, "step", "expected a finished game not to change"),
    (NoBoardPlane, "observe", "expected ones in plane 0"),
    (SecondPlayerFirst, "to_play", "at the start: expected player 0, who moves first, got 1"),
    (Impure, "returns", "expected a pure function"),
    (WrongSymmetry, "symmetries", "mirror left-right: .*differs in the game seen through it"),
    (HalfAGroup, "symmetries", "is a symmetry as well, which is not among them"),
    (SameNames, "_action_name", "actions 0 and 1 have the same name, a1"),
    (NameRaises, "_action_name", "action 1: .*KeyError: 1"),
    (ForgetsTheTurn, "from_text", "render prints another position"),
    (AcceptsGarbage, "from_text", "'': expected ValueError, got TicTacToeState"),
    (RendersNothing, "render", "at the start: expected text, got None"),
    (PrintsOtherSigns, "render", "expected a line of column names, then 3 rows of a name and 3 of x, o and ., to be"),
    (BadSplit, "join", "does not undo split"),
    (OtherLook, "returns", "differs from `look` in a batch"),
    (NoTargets, "final_targets", "expected the targets ownership of extra_targets, got nothing"),
    (TargetBeyondItsRange, "final_targets", r"expected ownership finite and in \[-1, 1\], got \[3. 3."),
    (TargetThatDoesNotTurn, "symmetries", "final_targets, ownership differs in the game seen through it"),
    (OtherStructure, "_play", r"expected a state as init gives it, .*TicTacToeState.*, got \(\*, \*\)"),
    (Exits, "observe", r"SystemExit: 3"),
    (OtherShapeLater, "observe", r"planes: expected bool\[3, 3, 3\], got bool\[2, 3, 3\]|TypeCheckError"),
    (LossOfThreeRows, "_loss_of_three", rf"{HERE}, line \d+: the loss of \w+: expected the shape .*, B = 37"),
    (LossNotFinite, "_loss_not_finite", rf"{HERE}, line \d+: the loss of \w+: expected finite numbers"),
    (BadLoss, "_bad_loss", r"the loss of filled: expected the shape \[B\] or \[B, 3, 3\], got float32\[\]"),
]


# One of each kind that has to be compiled; the others take longer.
SLOW = (NotZeroSum, TooFewMoves, LegalAtTheEnd, NeverLegal, NoBoardPlane, SecondPlayerFirst, Impure, HalfAGroup)
SLOW += (
    SameNames,
    AcceptsGarbage,
    RendersNothing,
    PrintsOtherSigns,
    OtherLook,
    TargetBeyondItsRange,
    MovesAfterTheEnd,
    NameRaises,
)
SLOW += (RewardsEarly, TargetThatDoesNotTurn, BadSplit, OtherShapeLater)
PARAMETERS = [pytest.param(*one, id=one[0].__name__, marks=[pytest.mark.slow] * (one[0] in SLOW)) for one in BROKEN]


@pytest.mark.parametrize(("game", "method", "said"), PARAMETERS)
def test_a_broken_game_is_explained(game: type[Game], method: str, said: str) -> None:
    with pytest.raises(OptionError) as caught:
        check_game(game)
    message = str(caught.value)
    assert message.startswith("tic_tac_toe: ")
    assert re.search(said, message), message
    written = vars(game).get(method)
    if written is not None:  # the method is in this file
        assert re.search(rf"{HERE}, line \d+, in {method}: ", message), message


def test_classes_that_are_no_games() -> None:
    class Lacks(Game):
        """Has no methods."""

    class Unset(TicTacToe):
        """Has no method for the result."""

        returns = None  # type: ignore[assignment]

    with pytest.raises(OptionError, match=r"Lacks lacks the method _action_name, _play, "):
        check_game(Lacks)
    with pytest.raises(OptionError, match=rf"{HERE}, line \d+: Unset lacks the method returns$"):
        check_game(Unset)
    with pytest.raises(OptionError, match="expected a class derived from"):
        check_game(TicTacToeState)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="a setting cannot be declared as"):
        check_game(UndeclaredOptions)
    with pytest.raises(OptionError, match="takes no options"):
        check_game(games.make("tic_tac_toe"), size=3)
    with pytest.raises(OptionError, match=r"TicTacToe|size: unknown option"):
        check_game(TicTacToe, size=3)


def test_a_game_without_a_name() -> None:
    nameless = type("Nameless", (TicTacToe,), {"name": ""})
    with pytest.raises(OptionError, match="name is missing"):
        check_game(nameless)


@pytest.mark.slow
def test_a_good_game_of_ones_own_passes() -> None:
    assert check_game(EveryTarget) == ()
