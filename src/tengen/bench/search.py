"""Search: evaluations per second, as a share of the bare network's, and next to pgx + mctx.

The bare network is measured in turn with the search, at the same batch and for as many evaluations, on positions after
some random moves.
"""

import importlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tengen import search
from tengen.bench.figures import RATIO, Figure
from tengen.bench.networks import Evaluate, evaluating, game_of, positions, sharpened, untrained
from tengen.bench.timing import Timing, in_turn
from tengen.config.settings.search import SearchSettings
from tengen.games.core import Game, Observation
from tengen.search.simulation import simulate

_USUAL_MOVES = 20  # before the roots
_SAMPLED = 16  # trees whose depth is measured


class SearchLine(NamedTuple):
    size: int  # of Go's board; 0 for chess
    net: str
    games: int
    algorithm: str
    simulations: int
    sharpness: float = 1.0  # factor of the logits
    after: int = _USUAL_MOVES  # random moves before the roots
    observation: str = "tengen"  # of Go

    @property
    def name(self) -> str:
        board = f"go {self.size}x{self.size}" if self.size else "chess"
        words = [board, self.net, f"{self.games} games", self.algorithm, str(self.simulations)]
        words += [f"sharp {self.sharpness:g}"] if self.sharpness != 1 else []
        words += [f"after {self.after}"] if self.after != _USUAL_MOVES else []
        return " ".join(words + ([self.observation] if self.observation != "tengen" else []))

    @property
    def evaluations(self) -> int:
        """Of every game: the root's and one for each simulation."""
        return self.simulations + 1

    def game(self) -> Game:
        return game_of("go", self.size, self.observation) if self.size else game_of("chess")


class SearchTimes(NamedTuple):
    """What was measured; times are those of all evaluations."""

    line: SearchLine
    bare: Timing
    search: Timing
    depth: float  # mean over the nodes of the final trees
    compiling: float = 0.0  # seconds of the first call
    peer: Timing | None = None  # of pgx + mctx
    peer_bare: Timing | None = None  # of the network with pgx's planes

    def rate(self, timing: Timing) -> float:
        return self.line.games * self.line.evaluations / timing.median

    def figures(self) -> list[Figure]:
        name, (share, noise) = self.line.name, self.bare.share_of(self.search)
        found = [
            Figure(f"bare network, {name}", self.rate(self.bare), "/s", self.bare.noise),
            Figure(f"search, {name}", self.rate(self.search), "/s", self.search.noise),
            Figure(f"search / bare network, {name}", share, RATIO, noise),
        ]
        if self.peer is None or self.peer_bare is None:
            return found
        ratio, noise = self.peer.share_of(self.search)
        share, share_noise = self.peer_bare.share_of(self.peer)
        return [
            Figure(f"search / pgx + mctx, {name}", ratio, RATIO, noise),
            Figure(f"pgx + mctx, {name}", self.rate(self.peer), "/s", self.peer.noise),
            Figure(f"pgx + mctx / bare network, {name}", share, RATIO, share_noise),
        ]


_GO9 = partial(SearchLine, 9, "b6c96", 4096)
_GO19 = partial(SearchLine, 19, "b10c128", 512)
_CHESS = partial(SearchLine, 0, "b10c128", 1024)
GPU = (
    _GO9("puct", 32), _GO9("gumbel", 32), _GO9("puct", 128), _GO9("gumbel", 128), _GO19("puct", 128),
    _GO19("gumbel", 128), _GO9("puct", 128, 300.0), _GO9("gumbel", 128, 30.0), _GO9("puct", 800), _GO9("gumbel", 800),
)  # fmt: skip
CHESS = (_CHESS("gumbel", 32), _CHESS("gumbel", 128), _CHESS("gumbel", 800))
KATAGO = (_GO9("gumbel", 32, observation="katago"),)
SMALL = tuple(SearchLine(9, net, 256, algorithm, 32) for net in ("b4c32", "b6c96") for algorithm in ("puct", "gumbel"))
# What pgx + mctx are measured for, too.
PEER = (
    _GO9("gumbel", 32), _GO9("gumbel", 128), _GO9("gumbel", 128, 30.0), _GO9("gumbel", 128, 1.0, 50),
    _GO9("gumbel", 128, 30.0, 50),
)  # fmt: skip
PEER_CHESS = CHESS[:1]
PEER_SMALL = (SearchLine(9, "b2c32", 64, "gumbel", 32),)


def measure(line: SearchLine, repeats: int, peer: bool = False) -> SearchTimes:
    """Bare network, search and, with `peer`, pgx + mctx in turn."""
    game = line.game()
    ask, state = untrained(game, line.net)
    evaluate = sharpened(ask, line.sharpness)
    states, seen = positions(game, line.games, line.after)
    run = searching(line, game, evaluate)
    began = time.perf_counter()
    tree = jax.block_until_ready(run(state, states))[1]
    compiling = time.perf_counter() - began
    depth = mean_depth(tree)
    del tree  # calls that are timed find as much memory as those of a run
    functions = {
        "bare": evaluating(state, evaluate, seen, line.evaluations),
        "search": lambda: run(state, states)[0],
    }
    if peer:
        functions |= peer_functions(line)
    found = in_turn(functions, repeats)
    theirs = (found["peer"], found["peer bare"]) if peer else (None, None)
    return SearchTimes(line, found["bare"], found["search"], depth, compiling, *theirs)


def figures(line: SearchLine, repeats: int, peer: bool = False) -> list[Figure]:
    """For `tengen bench all`."""
    return measure(line, repeats, peer).figures()


def searching(line: SearchLine, game: Game, evaluate: Evaluate) -> Callable[[Any, Any], Any]:
    """A program that searches from roots: its result, and the trees."""
    settings = SearchSettings(algorithm=line.algorithm, simulations=line.simulations)  # type: ignore[arg-type]

    @jax.jit
    def run(state: Any, states: Any) -> Any:
        tree = search.plant(game, settings, states, slots=line.evaluations)
        budget = jnp.full(line.games, line.simulations, jnp.int32)
        tree = search.begin(tree, jax.random.key(1), budget, jnp.ones(line.games, bool))
        step = lambda _, tree: simulate(lambda seen: evaluate(state, seen), tree)  # noqa: E731
        tree = jax.lax.fori_loop(0, line.evaluations, step, tree)
        return search.summarise(tree, jax.random.key(2)), tree

    return run


def mean_depth(tree: search.Tree) -> float:
    """Over the nodes of some trees."""
    depths = []
    for parents, count in zip(np.asarray(tree.parent[:_SAMPLED]), np.asarray(tree.used[:_SAMPLED]), strict=True):
        depth = np.zeros(len(parents), int)
        for node in range(1, count):  # in a tree without reuse, parents come before their children
            depth[node] = depth[parents[node]] + 1
        depths.append(depth[1:count].mean())
    return float(np.mean(depths))


def peer_functions(line: SearchLine) -> dict[str, Callable[[], Any]]:
    """pgx's Go or chess and mctx's Gumbel search around the same kind of network, and that network alone.

    From positions after as many random moves as ours; with the same network, for the planes that pgx has.
    """
    mctx: Any = importlib.import_module("mctx")  # its dataclasses are beyond pyright
    game = game_of(f"pgx:go_{line.size}x{line.size}" if line.size else "pgx:chess")
    env = game.env  # type: ignore[attr-defined]
    ask, state = untrained(game, line.net)
    evaluate = sharpened(ask, line.sharpness)
    states, observation = positions(game, line.games, line.after)

    def seen(inner: Any) -> Observation:
        return jax.vmap(lambda one: game.observe(states._replace(inner=one, first=jnp.int32(0))))(inner)

    def recurrent(state: Any, key: Any, action: Any, inner: Any) -> Any:
        mover = inner.current_player
        inner = jax.vmap(env.step)(inner, action)
        found = evaluate(state, seen(inner))
        logits = jnp.where(inner.legal_action_mask, found.logits, jnp.finfo(jnp.float32).min)
        reward = inner.rewards[jnp.arange(line.games), mover]
        discount = jnp.where(inner.terminated, 0.0, -1.0)
        value = jnp.where(inner.terminated, 0.0, found.value)
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value), inner

    @jax.jit
    def run(state: Any, inner: Any) -> Any:
        found = evaluate(state, seen(inner))
        root = mctx.RootFnOutput(prior_logits=found.logits, value=found.value, embedding=inner)
        return mctx.gumbel_muzero_policy(
            params=state, rng_key=jax.random.key(0), root=root, recurrent_fn=recurrent,
            num_simulations=line.simulations, invalid_actions=~inner.legal_action_mask,
        ).action  # fmt: skip

    bare = evaluating(state, evaluate, observation, line.evaluations)
    return {"peer bare": bare, "peer": lambda: run(state, states.inner)}
