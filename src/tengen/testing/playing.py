"""Whole games played on the device and recorded, and whether they followed the rules that all games share.

One program per game and batch is compiled and used again, because compiling is what takes the time.
"""

import re
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tengen import importing
from tengen.games import contract
from tengen.games.batching import quick_jit
from tengen.games.core import Game, PositionInfo
from tengen.games.targets import Target

ANY = -1  # in place of an action: draw one

Values = Any  # NumPy arrays in a record, JAX arrays where one is made


class PlayedGames(NamedTuple):
    """Arrays over T moments of B games; moment 0 is the start."""

    states: Any  # [T, B, ...] each leaf
    actions: Values  # Int32[T, B]: applied at that moment, also to games that are over
    legal: Values  # Bool[T, B, A]
    planes: Values  # Bool[T, B, H, W, C]
    scalars: Values  # Float32[T, B, S]
    to_play: Values  # Int32[T, B]
    over: Values  # Bool[T, B]
    returns: Values  # Float32[T, B, 2]
    targets: dict[str, Values]  # [T, B, ...] each: the final targets, as if the game ended there

    def state(self, moment: int, game: int) -> Any:
        return jax.tree.map(lambda leaf: leaf[moment, game], self.states)

    def length(self, game: int) -> int:
        """How many moves that game lasted (all that were recorded if it did not end)."""
        return int(self.over[:, game].argmax()) if self.over[:, game].any() else len(self.over) - 1


@cache
def alone(game: Game) -> Any:
    """A program for ONE game: (state, action) to (state, look, to_play, targets) after that action.

    `look` is made from its parts here, whereas records take it from the game: tests compare the two.
    """

    def after(state: Any, action: Any) -> tuple[Any, ...]:
        state = game.step(state, action)
        parts = game.legal_actions(state), game.observe(state), game.is_over(state), game.returns(state)
        return state, PositionInfo(*parts), game.to_play(state), game.final_targets(state)

    return quick_jit(after)


@cache
def _init(game: Game) -> Any:
    return quick_jit(jax.vmap(game.init))


@cache
def _play(game: Game) -> Any:
    def moment(states: Any, given: tuple[Any, Any, Any]) -> tuple[Any, PlayedGames]:
        key, wanted, liking = given
        legal, seen, over, returns, _ = jax.vmap(game.look)(states)
        # A finished game gets any action at all: it must not care.
        weights = jnp.where(legal | over[:, None], liking, -jnp.inf)
        drawn = jax.random.categorical(key, weights, axis=-1).astype(jnp.int32)
        actions = jnp.where(wanted == ANY, drawn, wanted)
        to_play, targets = jax.vmap(game.to_play)(states), jax.vmap(game.final_targets)(states)
        now = PlayedGames(states, actions, legal, *seen, to_play, over, returns, targets)
        return jax.vmap(game.step)(states, actions), now

    def run(states: Any, seed: Any, wanted: Any, liking: Any) -> PlayedGames:
        keys = jax.random.split(jax.random.key(seed), len(wanted))
        every = jnp.broadcast_to(liking, (len(wanted), *liking.shape))
        return jax.lax.scan(moment, states, (keys, wanted, every))[1]

    return quick_jit(run)


def start(game: Game, batch: int = 64, seed: int = 0) -> Any:
    return _init(game)(jax.random.split(jax.random.key(seed), batch))


def record(
    game: Game,
    states: Any,
    seed: int = 0,
    actions: np.ndarray | None = None,
    moments: int | None = None,
    liking: np.ndarray | None = None,
) -> PlayedGames:
    """Games from `states`: random legal moves, or `actions` Int32[T, B] where they are not ANY.

    `liking` Float32[A] are the logits of the draw. Without `moments`, until two after the longest possible game.
    """
    batch = jax.tree.leaves(states)[0].shape[0]
    moments = len(actions) if actions is not None else moments or game.max_moves + 2
    wanted = np.full((moments, batch), ANY, np.int32) if actions is None else actions.astype(np.int32)
    liking = np.zeros(game.num_actions, np.float32) if liking is None else liking.astype(np.float32)
    return jax.tree.map(np.asarray, _play(game)(states, seed, wanted, liking))


_SHOWN = 12  # moves of a game in a message
_OF_A_STATE = ("legal_actions", "observe", "to_play", "is_over", "returns", "final_targets")
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def problems(game: Game, played: PlayedGames) -> Iterator[str]:
    """What is wrong with the games, each kind once: where, after which moves, expected and found."""
    over, running = played.over, ~played.over
    sides = range(len(game.players))

    def wrong(method: str, bad: np.ndarray, expected: str, found: Any) -> Iterator[str]:
        """For the first of the games that is `bad` Bool[T, B] at some moment."""
        if bad.any():
            t, g = (int(x) for x in np.argwhere(bad)[0])
            yield problem(game, played, method, t, g, f"expected {expected}, got {found(t, g)}")

    legal, returns = played.legal.sum(-1), played.returns
    yield from wrong("is_over", over & (np.arange(len(over)) == 0)[:, None], "a running game", lambda t, g: "its end")
    if not over[game.max_moves].all():
        most, g = game.max_moves, int(np.argmin(over[game.max_moves]))
        endless = f"expected the end after max_moves, {most}, got a running game"
        yield problem(game, played, "is_over", most, g, endless)
    yield from wrong("legal_actions", running & (legal == 0), "a legal action, since the game runs", lambda *_: "none")
    yield from wrong(
        "legal_actions", over & (legal > 0), "no legal action, since the game is over", lambda *w: f"{legal[w]} of them"
    )
    yield from wrong("to_play", ~np.isin(played.to_play, sides), "0 or 1", lambda *w: played.to_play[w])
    first = (np.arange(len(over)) == 0)[:, None] & (played.to_play != 0)
    yield from wrong("to_play", first, "player 0, who moves first", lambda *w: played.to_play[w])
    if len(sides) == 2 and not (played.to_play[running] == 1).any():
        yield f"{contract.at(game, 'to_play')}: player 1 never moves; if the game is for one, give `players` one name"
    yield from wrong("returns", ~np.isfinite(returns).all(-1), "finite numbers", lambda *w: returns[w])
    yield from wrong("returns", (abs(returns) > 1).any(-1), "numbers in [-1, 1]", lambda *w: returns[w])
    yield from wrong("returns", (returns.sum(-1) != 0), "two numbers that cancel", lambda *w: returns[w])
    early = running & (returns != 0).any(-1)
    yield from wrong("returns", early, "zeros, since the game runs", lambda *w: returns[w])
    if game.planes_shape[2]:
        board = ~played.planes[..., 0].all((-2, -1))
        yield from wrong("observe", board, "ones in plane 0, which marks the board", lambda *w: "zeros among them")
    scalars = ~np.isfinite(played.scalars).all(-1)
    yield from wrong("observe", scalars, "finite scalars", lambda *w: played.scalars[w])
    changed = np.zeros(over.shape, bool)
    for leaf in jax.tree.leaves(played.states):
        differs = (leaf[1:] != leaf[:-1]) & ~((leaf[1:] != leaf[1:]) & (leaf[:-1] != leaf[:-1]))
        changed[:-1] |= differs.reshape(*differs.shape[:2], -1).any(-1) & over[:-1]
    yield from wrong("step", changed, "a finished game not to change", lambda *_: "another state after one more action")
    yield from _targets(game, played, wrong)


def _targets(game: Game, played: PlayedGames, wrong: Any) -> Iterator[str]:
    for target in game.extra_targets:
        values = played.targets[target.name].astype(np.float32)
        flat = values.reshape(*values.shape[:2], -1)
        low, high = {"ownership": (-1, 1), "binary": (0, 1)}.get(str(target.loss), (-np.inf, np.inf))
        bad = played.over & ~(np.isfinite(flat) & (flat >= low) & (flat <= high)).all(-1)
        expected = f"{target.name} finite" + (f" and in [{low}, {high}]" if np.isfinite(low) else "")
        yield from wrong("final_targets", bad, expected, lambda t, g, flat=flat: flat[t, g])
        if target.loss == "cross_entropy":
            parts = flat.reshape(*flat.shape[:2], 2 if target.sides == "each" else 1, -1)
            bad = played.over & ((abs(parts.sum(-1) - 1) > 1e-3) | (parts < 0).any(-1)).any(-1)
            yield from wrong("final_targets", bad, f"{target.name} to be probabilities", lambda *_: "other numbers")
        if callable(target.loss) and played.over.any() and np.isfinite(flat).all():
            ends = values[played.over]
            yield from _loss(target, ends[:, 0] if target.sides == "each" else ends)
        if target.dtype == "int8":
            bad = played.over & ((flat != np.round(flat)) | (abs(flat) > 127)).any(-1)
            yield from wrong("final_targets", bad, f"{target.name} to be whole numbers (int8)", lambda *_: "others")


def _loss(target: Target, wanted: np.ndarray) -> Iterator[str]:
    """A user's loss and its gradient are finite where a new network may be, for the targets of games that ended."""
    function: Any = target.loss
    outputs = np.random.default_rng(0).normal(0, 0.1, wanted.shape).astype(np.float32)
    try:
        loss, slope = jax.value_and_grad(lambda given: function(given, wanted).mean())(outputs)
    except Exception as error:
        yield f"{importing.where(function)}: the loss of {target.name}: {importing.explain(error)}"
        return
    for what, found in (("", loss), ("gradient of the ", slope)):
        if not np.isfinite(found).all():
            yield f"{importing.where(function)}: the {what}loss of {target.name}: expected finite numbers, got others"
            return


def again(game: Game, played: PlayedGames) -> Iterator[str]:
    """Games are the same when they are played again, alone or by `step_and_look`, and others are good too."""
    for g in (0, 1):
        yield from _alone(game, played, g)
    yield from pure(game, played)
    yield from _step_and_look(game, played)
    yield from _search_trees(game, played)
    for seed in (2, 3):
        more = record(game, start(game, played.over.shape[1], seed), seed)
        yield from problems(game, more)


def _alone(game: Game, played: PlayedGames, g: int) -> Iterator[str]:
    state = played.state(0, g)
    for t in range(min(played.length(g) + 1, len(played.over) - 1)):
        state, look, to_play, targets = alone(game)(state, played.actions[t, g])
        if different := _difference(state, played.state(t + 1, g)):
            wrong = f"the state of a game alone differs from a batch: {different}"
            yield problem(game, played, "_play", t + 1, g, wrong)
            return
        seen = {
            "legal_actions": (look.legal, played.legal),
            "observe": (look.observation, (played.planes, played.scalars)),
            "to_play": (to_play, played.to_play),
            "is_over": (look.over, played.over),
            "returns": (look.returns, played.returns),
            "final_targets": (targets, played.targets),
        }
        for method, (one, batch) in seen.items():
            here = jax.tree.map(lambda leaf, t=t: leaf[t + 1, g], batch)
            if different := _difference(jax.tree.leaves(one), jax.tree.leaves(here)):
                yield problem(game, played, method, t + 1, g, f"differs from `look` in a batch: {different}")
                return


def pure(game: Game, played: PlayedGames) -> Iterator[str]:
    """Every method gives the same program each time that it is traced; compiling would hide what it remembers."""
    if found := list(contract.problems(game)):  # it was good when the game was made
        yield from found
        return
    state, action, key = played.state(0, 0), np.int32(0), jax.random.key(0)
    methods: dict[str, tuple[Any, ...]] = {"init": (key,), "_play": (state, action)}
    methods |= dict.fromkeys(_OF_A_STATE, (state,))
    for method, args in methods.items():
        one, other = (jax.make_jaxpr(getattr(game, method))(*args) for _ in range(2))
        texts = [_ADDRESS.sub("", str(program.jaxpr)) for program in (one, other)]
        if texts[0] != texts[1] or _difference(list(one.consts), list(other.consts)):
            yield f"{contract.at(game, method)}: expected a pure function, got another result at the second call"


def _step_and_look(game: Game, played: PlayedGames) -> Iterator[str]:
    if type(game).step_and_look is Game.step_and_look and type(game).look is Game.look:
        return
    program, look = quick_jit(game.step_and_look), quick_jit(jax.vmap(game.look))
    for t in sorted({0, 1, len(played.over) // 3, len(played.over) // 2, len(played.over) - 2}):
        now, then = (jax.tree.map(lambda leaf, t=t: leaf[t], played.states) for t in (t, t + 1))
        stay = np.random.default_rng(t).random(len(played.actions[t])) < 0.3
        expected = jax.tree.map(partial(_choose, stay), (now, look(now)), (then, look(then)))
        found = program(now, played.actions[t], stay)
        if different := _difference(found, expected):
            yield f"{contract.at(game, 'step_and_look')}: move {t + 1}: differs from step, then look: {different}"
            return


def _search_trees(game: Game, played: PlayedGames) -> Iterator[str]:
    for t, g in ((0, 0), (played.length(0) // 2, 0), (played.length(1), 1)):
        state = played.state(t, g)
        node, kept = game.split(state)
        if different := _difference(game.join(node, kept), state):
            yield problem(game, played, "join", t, g, f"does not undo split: {different}")
            return
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), played.state(0, 0))
    node, _ = jax.eval_shape(game.split, shapes)
    after = jax.eval_shape(game.step, node, jax.ShapeDtypeStruct((), np.int32))
    if jax.tree.map(str, after) != jax.tree.map(str, node):
        yield f"{contract.at(game, 'split')}: step of a node without `kept` gives another kind of state"


def problem(game: Game, played: PlayedGames, method: str, t: int, g: int, wrong: str) -> str:
    """What is wrong with a method at a moment of a recorded game, with its file and line."""
    return f"{contract.at(game, method)}: {moment(game, played, t, g)}: {wrong}"


def moment(game: Game, played: PlayedGames, t: int, g: int) -> str:
    """`after 3 moves (a1 b2 c3)`: where a recorded game is."""
    actions = [int(action) for action in played.actions[:t, g]]
    try:
        names = [game.action_name(played.state(ply, g), action) for ply, action in enumerate(actions)]
    except Exception:
        names = [str(action) for action in actions]
    if not names:
        return "at the start"
    shown = " ".join((["..."] if len(names) > _SHOWN else []) + names[-_SHOWN:])
    return f"after {len(names)} move{'s' * (len(names) > 1)} ({shown})"


def _difference(one: Any, other: Any) -> str:
    if jax.tree.structure(one) != jax.tree.structure(other):
        return "another structure"
    paths = jax.tree_util.tree_flatten_with_path(one)[0]
    for (path, a), b in zip(paths, jax.tree.leaves(other), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"{a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}{jax.tree_util.keystr(path)}"
        if not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            at = tuple(int(x) for x in np.argwhere(a != b)[0])
            return f"{a[at]} and {b[at]} at {jax.tree_util.keystr(path)}{list(at) if at else ''}".rstrip()
    return ""


def _choose(first: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """[B, ...] of the one where `first` Bool[B] is set, otherwise of the other."""
    return np.where(first.reshape(-1, *[1] * (one.ndim - 1)), one, other)
