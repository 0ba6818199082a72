"""A match on the device: pairs of games from the same opening with colours swapped, all games at once.

In every round of moves each player moves in at most one game of each pair. Where players alternate, one game of a pair
waits for A whenever the other waits for B, so both players always have as many positions as there are pairs. Where a
player moves twice running, or one game of a pair is over, a place stays empty for that round.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int, Int16, Int32

from tengen.config.settings.match import MatchSettings
from tengen.errors import OptionError
from tengen.games.core import Game
from tengen.games.players import Player, Rule
from tengen.match.match_games import PlayedGame
from tengen.match.openings import MatchOpenings, openings
from tengen.match.results import MatchResult
from tengen.run import safe_exit

NO_MOVE = -1
_CALL = 1.0  # seconds that one call to the device should take
Stop = Callable[[], bool]


class DeviceTables(NamedTuple):
    """The games of P pairs. In row 0 player A moves first, in row 1 player B."""

    states: Any  # [2, P, ...]
    legal: Bool[Array, "2 pairs actions"]
    over: Bool[Array, "2 pairs"]
    results: Float32[Array, "2 pairs"]  # for player A, 0 while the game runs
    forfeits: Bool[Array, "2 pairs"]  # ended by an illegal move
    moves: Int16[Array, "2 pairs most"]  # -1 after the end
    length: Int32[Array, "2 pairs"]


class MatchLimits(NamedTuple):
    """A match ends as soon as either player has this many points; a draw is half a point to each."""

    a: float | Array = np.inf
    b: float | Array = np.inf


class MatchStanding(NamedTuple):
    finished: int
    under_way: int
    moves: int  # played by this process, without those of the openings
    compiling: bool = False


class DeviceTurn(NamedTuple):
    """Where one of the players has to move in this round."""

    row: Int32[Array, " pairs"]  # in which game of each pair
    which: Bool[Array, " pairs"]  # whether in any


@dataclass(frozen=True, eq=False)
class Match:
    """G games that were played; 2i and 2i + 1 began with the same opening, and A moved first in the former."""

    game: str
    a: str
    b: str
    results: np.ndarray  # Float32[G]: for A, in [-1, 1]
    actions: np.ndarray  # Int16[G, M]: all moves, the opening's included; -1 after the end
    length: np.ndarray  # Int32[G]
    forfeits: np.ndarray  # Bool[G]: lost by an illegal move
    seeds: np.ndarray  # UInt32[G, ...]: `game.init` began with the keys of these data
    opening_moves: int
    finished: np.ndarray  # Bool[G]: False for games that were under way when the match was ended early
    stopped: bool = False  # whether `stop` ended the match

    @property
    def a_first(self) -> np.ndarray:
        """Bool[G]: where A moved first."""
        return np.arange(len(self.results)) % 2 == 0

    @property
    def result(self) -> MatchResult:
        return MatchResult.of_games(self.a, self.b, self.results, self.finished)

    def games(self, first_pair: int = 0, scores: np.ndarray | None = None) -> list[PlayedGame]:
        """The finished games one by one, the first pair having that number; `scores` [G] are player 0's points."""
        games = []
        for place in map(int, np.flatnonzero(self.finished)):
            forfeit = bool(self.forfeits[place])
            games.append(
                PlayedGame(
                    number=2 * first_pair + place,
                    actions=tuple(self.actions[place, : self.length[place]].tolist()),
                    opening=self.opening_moves,
                    seed=tuple(self.seeds[place].tolist()),
                    result=float(self.results[place]),
                    ending="forfeit" if forfeit else "played out",
                    fault="illegal move" if forfeit else "",
                    reason="a move that the rules do not allow" if forfeit else "",
                    score=None if scores is None or forfeit else float(scores[place]),
                )
            )
        return games

    def __str__(self) -> str:
        lost = f"; {self.forfeits.sum()} games lost by illegal moves" if self.forfeits.any() else ""
        return f"{self.result}{lost}"


def play(
    game: Game,
    a: Player,
    b: Player,
    key: Array,
    settings: MatchSettings = MatchSettings(),  # noqa: B008
    *,
    start: MatchOpenings | None = None,
    until: MatchLimits = MatchLimits(),  # noqa: B008
    stop: Stop = lambda: False,
    show: Callable[[MatchStanding], object] = lambda standing: None,
    apart: bool = False,
    swap: bool = True,
    exit_while_compiling: bool = False,
) -> Match:
    """Plays a match to the end, until one of the limits, or until `stop`; about once a second `show` gets its standing.

    An illegal move loses its game. With `start`, one pair begins at each of these openings and `settings` are ignored:
    the rounds of a longer match take parts of one set of openings, so that none is played twice.

    Between two players with compiled rules the moves of a second are one call of one program. With `apart` each player
    is a separate program instead: the games are the same, and a player who meets many opponents is compiled only once.
    Without `swap` only the games are played in which A moves first, one for each opening; limits are for whole pairs.
    """
    opening, playing = jax.random.split(key)
    if start is None:
        if settings.games < 2 or settings.games % 2:
            raise OptionError(f"match: expected an even number of games, got {settings.games}")
        start = openings(game, opening, settings.games // 2, settings.opening_moves)
    until = MatchLimits(*(jnp.float32(points) for points in until))
    # On the players' device: what comes out of the first call is there, and another place would be compiled for again.
    playing, tables, until = _placed((playing, _set_up(game, start), until), (a.params, b.params))
    if not swap:
        tables = tables._replace(over=tables.over.at[1].set(True))
    most, first = 1.0, True  # rounds of moves in the next call
    while True:
        began = time.monotonic()
        count = max(int(most), 1)
        with safe_exit.possible(exit_while_compiling and first):
            if apart or a.on_host or b.on_host:
                playing, tables = _play_from_host(game, a, b, playing, tables, until, count)
            else:
                arguments = (a.rule, b.rule, a.params, b.params, playing, tables, until, jnp.int32(count))
                playing, tables = _play(game, *arguments)
            more = bool(_goes_on_compiled(tables, until))
        if not more or stop():
            return _finished(game, a.name, b.name, start, tables, stopped=more, swap=swap)
        seconds = time.monotonic() - began
        most, first = min(4 * count, max(count * _CALL / max(seconds, 1e-3), 1)), False
        over, length = (part[: 1 + swap] for part in jax.device_get((tables.over, tables.length)))
        finished = int(over.sum())
        show(MatchStanding(finished, over.size - finished, int(length.sum()) - length.size * start.actions.shape[1]))


def _placed(values: Any, params: Any) -> Any:
    """The values on the device of the parameters, if those are on one device."""
    devices = {frozenset(leaf.devices()) for leaf in jax.tree.leaves(params) if isinstance(leaf, Array)}
    if len(devices) != 1 or len(found := next(iter(devices))) != 1:
        return values
    return jax.device_put(values, next(iter(found)))


@partial(jax.jit, static_argnames="game")
def _set_up(game: Game, start: MatchOpenings) -> DeviceTables:
    pairs, opening_moves = start.actions.shape
    look = jax.vmap(game.look)(start.states)
    twice = lambda leaf: jnp.stack([leaf, leaf])  # noqa: E731
    moves = jnp.full((pairs, game.max_moves), NO_MOVE, jnp.int16)
    moves = moves.at[:, :opening_moves].set(start.actions.astype(jnp.int16))
    return DeviceTables(
        states=jax.tree.map(twice, start.states),
        legal=twice(look.legal),
        over=twice(look.over),
        results=jnp.zeros((2, pairs)),
        forfeits=jnp.zeros((2, pairs), bool),
        moves=twice(moves),
        length=jnp.full((2, pairs), opening_moves, jnp.int32),
    )


@partial(jax.jit, static_argnames=("game", "a", "b"))
def _play(
    game: Game,
    a: Rule,
    b: Rule,
    params_a: Any,
    params_b: Any,
    key: Array,
    tables: DeviceTables,
    until: MatchLimits,
    most: Array,
) -> tuple[Array, DeviceTables]:
    """Plays at most `most` rounds of moves on the device, or to the end or the limits; gives the key to go on with."""

    def actions(rule: Rule, params: Any, key: Array, tables: DeviceTables, turn: DeviceTurn) -> Array:
        states = _waiting(tables, turn)
        nothing = jnp.zeros(turn.which.shape, jnp.int32)
        # At the end of a match often only one of the players still has something to do.
        return lax.cond(
            turn.which.any(),
            lambda: rule(params, key, states, turn.which).astype(jnp.int32),
            lambda: nothing,
        )

    def a_round(carry: tuple[Array, DeviceTables, Array]) -> tuple[Array, DeviceTables, Array]:
        key, tables, left = carry
        key, for_a, for_b = jax.random.split(key, 3)
        turns = _turns(game, tables)
        chosen_a = actions(a, params_a, for_a, tables, turns[0])
        chosen_b = actions(b, params_b, for_b, tables, turns[1])
        return key, _move(game, tables, turns, chosen_a, chosen_b), left - 1

    def more(carry: tuple[Array, DeviceTables, Array]) -> Array:
        return _goes_on(carry[1], until) & (carry[2] > 0)

    return lax.while_loop(more, a_round, (key, tables, most))[:2]


def _play_from_host(
    game: Game, a: Player, b: Player, key: Array, tables: DeviceTables, until: MatchLimits, most: int
) -> tuple[Array, DeviceTables]:
    """The same with the host calling the players, which may be Python functions: one round trip per round."""
    for _ in range(most):
        if not bool(_goes_on_compiled(tables, until)):
            break
        key, *keys = jax.random.split(key, 3)
        turns = _turns_compiled(game, tables)
        chosen = [
            player.ask(now, _waiting_compiled(tables, turn), turn.which)
            for player, turn, now in zip((a, b), turns, keys, strict=True)
        ]
        tables = _move_compiled(game, tables, turns, *chosen)
    return key, tables


def _goes_on(tables: DeviceTables, until: MatchLimits) -> Bool[Array, ""]:
    """Whether games are under way and neither player has reached its limit."""
    points = (jnp.sign(tables.results) + 1) / 2
    of_a = jnp.where(tables.over, points, 0).sum()
    of_b = jnp.where(tables.over, 1 - points, 0).sum()
    return ~tables.over.all() & (of_a < until.a) & (of_b < until.b)


def _turns(game: Game, tables: DeviceTables) -> tuple[DeviceTurn, DeviceTurn]:
    first = jax.vmap(jax.vmap(game.to_play))(tables.states) == 0
    of_a = first ^ jnp.array([[False], [True]])
    waiting = (~tables.over & of_a, ~tables.over & ~of_a)
    return tuple(DeviceTurn(jnp.argmax(here, 0).astype(jnp.int32), here.any(0)) for here in waiting)  # pyright: ignore


def _waiting(tables: DeviceTables, turn: DeviceTurn) -> Any:
    """[P, ...]: the positions in which the player has to move."""
    return jax.tree.map(lambda leaf: leaf[turn.row, jnp.arange(len(turn.row))], tables.states)


def _move(
    game: Game,
    tables: DeviceTables,
    turns: tuple[DeviceTurn, DeviceTurn],
    chosen_a: Int[Array, " pairs"],
    chosen_b: Int[Array, " pairs"],
) -> DeviceTables:
    rows = jnp.arange(2)[:, None]
    at_a, at_b = ((rows == turn.row) & turn.which for turn in turns)
    actions = jnp.where(at_a, chosen_a, chosen_b).astype(jnp.int32)
    within = (actions >= 0) & (actions < game.num_actions)
    inside = jnp.where(within, actions, 0)
    allowed = within & jnp.take_along_axis(tables.legal, inside[..., None], 2)[..., 0]
    chosen = at_a | at_b
    moved, forfeit = chosen & allowed, chosen & ~allowed

    flat = lambda leaf: leaf.reshape(-1, *leaf.shape[2:])  # noqa: E731
    states, look = game.step_and_look(jax.tree.map(flat, tables.states), flat(inside), flat(~moved))
    states, look = jax.tree.map(lambda leaf: leaf.reshape(*actions.shape, *leaf.shape[1:]), (states, look))
    seat_of_a = jnp.broadcast_to(rows, actions.shape)
    result = jnp.take_along_axis(look.returns, seat_of_a[..., None], 2)[..., 0]
    result = jnp.where(forfeit, jnp.where(at_a, -1.0, 1.0), result)
    # Whatever the rules promise, a game longer than `max_moves` ends, undecided.
    length = tables.length + moved
    over = tables.over | look.over | forfeit | (length >= game.max_moves)
    place = jnp.where(moved, tables.length, game.max_moves)  # what lies outside is dropped
    moves = tables.moves.at[rows, jnp.arange(actions.shape[1]), place].set(inside.astype(jnp.int16), mode="drop")
    results = jnp.where(tables.over, tables.results, result)
    return DeviceTables(states, look.legal, over, results, tables.forfeits | forfeit, moves, length)


_goes_on_compiled = jax.jit(_goes_on)
_turns_compiled = jax.jit(_turns, static_argnames="game")
_waiting_compiled = jax.jit(_waiting)
_move_compiled = jax.jit(_move, static_argnames="game")


def _finished(
    game: Game, a: str, b: str, start: MatchOpenings, tables: DeviceTables, stopped: bool, swap: bool
) -> Match:
    """The match on the host, the games of a pair next to each other."""
    kept = jax.device_get((tables.results, tables.moves, tables.length, tables.forfeits, tables.over))
    paired = [np.ascontiguousarray(part.swapaxes(0, 1)).reshape(-1, *part.shape[2:]) for part in kept]
    results, moves, length, forfeits, over = paired
    finished = over & (swap | (np.arange(len(over)) % 2 == 0))
    return Match(
        game=game.name,
        a=a,
        b=b,
        results=results,
        actions=moves[:, : int(length.max())],
        length=length,
        forfeits=forfeits,
        seeds=np.repeat(np.asarray(start.seeds), 2, 0),
        opening_moves=start.actions.shape[1],
        finished=finished,
        stopped=stopped,
    )
