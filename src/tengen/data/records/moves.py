"""The names of the moves of a record, the positions they lead to, and starts that are drawn at random."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen import games
from tengen.data.records.records import Record, RecordError
from tengen.games.core import Game

# In these games a move has the same name in every position, and players alternate: nothing needs to be replayed.
_PLAIN_NAMES = ("tic_tac_toe", "connect_four", "othello", "hex", "go")

_kept = lru_cache(maxsize=64)


class RecordMove(NamedTuple):
    player: int
    name: str


def game_of(record: Record) -> Game:
    """The game that was played. RecordError if there is no such game or option."""
    try:
        return _made(record.game, json.dumps(dict(record.options), sort_keys=True))
    except (ValueError, TypeError) as error:
        raise RecordError(f"options: {error}") from error


def named(record: Record) -> list[RecordMove]:
    """The moves of a record. RecordError if one does not exist."""
    game = game_of(record)
    if record.game in _PLAIN_NAMES:
        names, first = _names(game), _first_player(game, record)
        wrong = [action for action in record.actions if not 0 <= action < len(names)]
        if wrong:
            raise RecordError(f"{record.game}: there is no action {wrong[0]}")
        return [RecordMove((first + ply) % 2, names[action]) for ply, action in enumerate(record.actions)]
    positions = zip(record.actions, replay(record), strict=False)
    return [RecordMove(int(game.to_play(state)), game.action_name(state, action)) for action, state in positions]


def actions_of(record: Record, moves: Sequence[RecordMove]) -> tuple[int, ...]:
    """The actions with these names, in a game that begins as `record` does. RecordError for an unknown name."""
    game = game_of(record)
    if record.game in _PLAIN_NAMES:
        numbers = {name.lower(): action for action, name in enumerate(_names(game))}
        first = _first_player(game, record)
        actions = []
        for ply, move in enumerate(moves):
            _check_player(ply, move, (first + ply) % 2)
            if move.name.lower() not in numbers:
                raise RecordError(f"move {ply + 1}: {record.game}: no move is called {move.name!r}")
            actions.append(numbers[move.name.lower()])
        return tuple(actions)
    step, state, actions = _compiled(game, "step"), start(game, record), []
    for ply, move in enumerate(moves):
        _check_player(ply, move, int(game.to_play(state)))
        try:
            actions.append(game.parse_action(state, move.name))
        except ValueError as error:
            raise RecordError(f"move {ply + 1}: {error}") from error
        state = step(state, np.int32(actions[-1]))
    return tuple(actions)


def replay(record: Record) -> Iterator[Any]:
    """The positions of the game, from the start to the end. RecordError if a move was not legal."""
    game = game_of(record)
    return play_on(game, start(game, record), record.actions)


def play_on(game: Game, state: Any, actions: Iterable[int]) -> Iterator[Any]:
    """A position, and those that the actions lead to. RecordError if one is not legal."""
    step, legal = _compiled(game, "step"), _compiled(game, "legal_actions")
    yield state
    for ply, action in enumerate(actions):
        if not (0 <= action < game.num_actions and bool(legal(state)[action])):
            over = " after the game was over" if game.is_over(state) else ""
            raise RecordError(f"move {ply + 1}: {_called(game, state, action)} is not legal here{over}")
        state = step(state, np.int32(action))
        yield state


def _called(game: Game, state: Any, action: int) -> str:
    try:
        return game.action_name(state, action)
    except ValueError:
        return f"action {action}"


def _check_player(ply: int, move: RecordMove, expected: int) -> None:
    if move.player != expected:
        raise RecordError(f"move {ply + 1}: expected a move of player {expected}, got one of player {move.player}")


def start(game: Game, record: Record) -> Any:
    """The position in which the game of a record began. RecordError if it is none of `game`."""
    if record.start is None:
        return _compiled(game, "init")(jax.random.key(0))
    try:
        return game.from_text(record.start)
    except ValueError as error:
        raise RecordError(f"start: {error}") from error


def _first_player(game: Game, record: Record) -> int:
    return 0 if record.start is None else int(game.to_play(start(game, record)))


@_kept
def _made(name: str, options: str) -> Game:
    return games.make(name, **json.loads(options)).exact


@_kept
def _names(game: Game) -> list[str]:
    nowhere = cast(Any, None)  # these games ignore the position
    return [game.action_name(nowhere, action) for action in range(game.num_actions)]


@_kept
def _compiled(game: Game, method: str) -> Any:
    return jax.jit(getattr(game, method))


def start_of(game: Game, seed: np.ndarray | Array) -> str | None:
    """The start of the game with that `seed` UInt32[2], as the game renders it; None for the usual start."""
    if not _begins_at_random(game):
        return None
    init = _compiled(game, "init")
    keys = (jax.random.wrap_key_data(jnp.asarray(seed)), jax.random.key(0))
    start, usual = (game.render(init(key)) for key in keys)
    return None if start == usual else start


@_kept
def _begins_at_random(game: Game) -> bool:
    """Whether a new game uses its key."""
    program = jax.make_jaxpr(game.init)(jax.random.key(0)).jaxpr
    return any(program.invars[0] in equation.invars for equation in program.eqns)
