"""Whether a network fits a game, and how the game's actions are laid out on its board."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Int

from tengen import importing
from tengen.errors import OptionError
from tengen.games import chess_lc0
from tengen.games.core import Game
from tengen.games.targets import Per, Target
from tengen.nets.specs import HEADS, Spec
from tengen.schema import unknown

_GIVEN = ("game", "heads", "rngs")  # what a user's function is called with, before its options
# Heads that every game can teach.
_ALWAYS = ("opponent_policy", "moves_left")


def problems(spec: Spec, game: Game) -> Iterator[tuple[str, str]]:
    """Reasons why the network cannot play `game`: (the setting at fault, message)."""
    height, width, planes = game.planes_shape
    if spec.tower is not None and planes == 0:
        yield "name", f"{game.name} has no board, expected a network of dense layers such as mlp3x256"
    if spec.is_lc0:
        if (*game.planes_shape, game.num_actions) != (8, 8, chess_lc0.PLANES, chess_lc0.NUM_MOVES):
            yield "name", f"{game.name} is not chess, for which Lc0's networks are, expected a tower such as b6c96"
        for head in {*spec.heads} - {"moves_left"}:
            yield "heads", f"Lc0's networks have no head for {head}, expected moves_left or none"
    if spec.layers is not None and planes > 0:
        yield "name", f"{game.name} is played on a {height}x{width} board, expected a tower such as b6c96"
    if spec.function is not None:
        try:
            function = importing.load(spec.function, "a function that builds a network")
        except OptionError as error:
            yield "name", str(error)
        else:
            for key, problem in _unfit_options(function, spec.options or {}):
                yield key, f"{spec.function}: {problem} ({importing.where(function)})"
    for head in spec.heads:
        possible = possible_heads(game)
        if head not in possible and head in HEADS:
            yield "heads", f"{game.name} has no {head} to learn from, expected some of {', '.join(possible)}"
        elif head not in possible:
            yield "heads", f"{head}: {unknown('head', head, possible)}"
    if planes == 0 and (on_board := extra_targets(spec, game, "point")):
        yield "heads", f"{on_board[0].name} is a number per point, and {game.name} has no board"


def _unfit_options(function: Any, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Why a user's function cannot be called with these options, as `problems` has it."""
    try:
        signature = inspect.signature(function)
        signature.bind_partial(*_GIVEN)
    except (TypeError, ValueError):  # building the network says what is wrong
        return
    own = [parameter for name, parameter in signature.parameters.items() if name != "dtype"][len(_GIVEN) :]
    known = [one.name for one in own if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    for name in options:
        if name not in known and not any(one.kind is one.VAR_KEYWORD for one in own):
            yield f"options.{name}", unknown("option", name, known)
    missing = [one.name for one in own if one.name in known and one.default is one.empty and one.name not in options]
    if missing:
        yield "options", f"needs the option {', '.join(missing)}"


def possible_heads(game: Game) -> tuple[str, ...]:
    """The extra heads for which the game has targets."""
    known = [head for head in HEADS if head in _ALWAYS or game.target(head)]
    return (*known, *(target.name for target in game.extra_targets if target.name not in HEADS))


def extra_targets(spec: Spec, game: Game, per: Per | None = None) -> tuple[Target, ...]:
    """The targets of the network's heads apart from HEADS; only those per point, action or number if `per` says so."""
    wanted = [target for target in game.extra_targets if target.name in spec.heads and target.name not in HEADS]
    return tuple(target for target in wanted if per in (None, target.per))


def check(spec: Spec, game: Game) -> None:
    """Raises OptionError if the network does not fit the game."""
    found = [message for _, message in problems(spec, game)]
    if found:
        raise OptionError("; ".join(found))


@dataclass(frozen=True)
class Layout:
    """How the actions of a game are laid out on its board: the first rule that fits the number of actions applies.

    - points: one action per point, row by row, then `extra` ones that belong to no point (pass, swap); or `per_point`
      actions per point, numbered point by point unless there is a `numbering`. Chess numbers only those that stay on
      the board, as Lc0 does.
    - columns: as many actions as the board has columns (connect four).
    - dense: anything else; nothing is assumed.
    """

    kind: Literal["points", "columns", "dense"]
    per_point: int = 0
    extra: int = 0
    numbering: str | None = None  # the game, if its actions have a special order

    def order(self, height: int, width: int) -> Int[np.ndarray, " actions"] | None:
        """Where each action is among the outputs [height, width, per_point]; None if they are already in order."""
        if self.numbering is None:
            return None
        if self.numbering in _CHESS:
            plane, square = np.divmod(chess_lc0.convolution(height), height * width)
            return square * self.per_point + plane
        y, x, way = np.mgrid[:height, :width, : self.per_point]
        action = _NUMBERINGS[self.numbering](y, x, way, height, width, self.per_point)
        return np.argsort(action.reshape(-1))


_CHESS = ("chess", "minichess")
# pgx numbers squares along files, and its observation is rotated; y = 0 is the top row of the planes.
_NUMBERINGS = {
    "pgx:chess": lambda y, x, way, h, w, n: (x * h + (h - 1 - y)) * n + way,
    "pgx:gardner_chess": lambda y, x, way, h, w, n: (x * h + (h - 1 - y)) * n + way,
    "pgx:shogi": lambda y, x, way, h, w, n: way * h * w + (w - 1 - x) * h + y,
    "pgx:animal_shogi": lambda y, x, way, h, w, n: way * h * w + x * h + y,
}


def layout(game: Game) -> Layout:
    height, width, _ = game.planes_shape
    if game.name in _CHESS:
        return Layout("points", chess_lc0.used_planes(height), 0, game.name)
    per_point, extra = divmod(game.num_actions, height * width)
    if per_point == 1 or (per_point > 1 and extra == 0):
        return Layout("points", per_point, extra, game.name if game.name in _NUMBERINGS else None)
    return Layout("columns" if game.num_actions == width else "dense")
