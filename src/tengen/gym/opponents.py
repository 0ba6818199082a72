"""The opponent of an environment: a name, a network, a `Player`, or any Python function."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import Array

from tengen import importing
from tengen.errors import OptionError
from tengen.games.core import Game
from tengen.games.players import Player
from tengen.importing import UserCodeError
from tengen.match import player_spec
from tengen.match.engines import engine
from tengen.roles import rules
from tengen.schema import quote

AnyOpponent = str | Path | Player | Callable[[Any, np.ndarray], Any]
"""`random`, `mcts:200`, the path of a network or a run, other players of roles, a `Player`, or a function of
(observations [N, ...], action masks Bool[N, A]) that gives Int32[N]."""


def find_opponent(given: AnyOpponent, game: Game, player: int | None, shown: Callable[[Any, Any], Any]) -> Player:
    """The opponent of `player` (None: of both). `shown` makes observations of (planes, scalars) for functions."""
    if isinstance(given, Player):
        return given
    if isinstance(given, str | Path):
        return _named(str(given), game, player)
    if not callable(given):
        raise OptionError(f"opponent: expected a name, a path, a Player or a function, got {quote(given)}")
    return Player(getattr(given, "__name__", type(given).__name__), _FunctionRule(game, given, shown), on_host=True)


def _named(text: str, game: Game, player: int | None) -> Player:
    if engine.is_foreign(text):
        raise OptionError(f"opponent: {text}: programs play in `tengen match`, not in environments")
    if text.partition(":")[0] in ("random", "mcts"):
        return player_spec.parse(text).player(game)
    role = game.roles[0 if player is None else 1 - player]
    try:
        return rules.parse(text, game, role)
    except OptionError as error:
        raise OptionError(f"opponent: {error}; random and mcts:200 are possible too") from None


@dataclass(frozen=True, eq=False)
class _FunctionRule:
    """A user's function, asked about the games in which it is to move."""

    game: Game
    function: Callable[[Any, np.ndarray], Any]
    shown: Callable[[Any, Any], Any]

    def __call__(self, params: Any, key: Array, states: Any, which: Any) -> Any:
        del params, key
        places = np.flatnonzero(which)
        look = jax.device_get(_look(self.game, states))
        legal = np.asarray(look.legal)[places]
        with importing.told("opponent"):
            found = np.asarray(self.function(self.shown(*(leaf[places] for leaf in look.observation)), legal))
        where = importing.where(self.function)
        if found.shape != places.shape or not np.issubdtype(found.dtype, np.integer):
            got = f"{found.dtype}{list(found.shape)}"
            raise UserCodeError(f"opponent: expected whole numbers of the shape [{len(places)}], got {got} ({where})")
        good = (found >= 0) & (found < self.game.num_actions)
        good &= legal[np.arange(len(places)), np.where(good, found, 0)]
        if not good.all():
            raise UserCodeError(f"opponent: action {found[~good][0]} is not legal in its position ({where})")
        actions = np.zeros(len(which), np.int32)
        actions[places] = found
        return actions


@partial(jax.jit, static_argnums=0)
def _look(game: Game, states: Any) -> Any:
    return jax.vmap(game.look)(states)
