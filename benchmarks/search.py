"""Search against the bare network: evaluations per second in search, as a share of the network's own.

    python benchmarks/search.py              # everything (an NVIDIA GPU), pgx + mctx measured in the same run
    python benchmarks/search.py --small      # a small batch and network, for two CPU cores
    python benchmarks/search.py --chess      # chess instead of Go, next to pgx's

Every line measures the bare network at the same batch right before the search, on positions after 20 random moves, for
as many evaluations as the search makes: a GPU that works for longer than some tens of milliseconds slows down by a few
percent. `depth` is the mean depth of the nodes of the final trees. Sharp priors (logits times 30 or 300) make trees
deep.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from tengen import games, nets, search
from tengen.bench.games import choose
from tengen.bench.timing import median_seconds
from tengen.config.settings.search import SearchSettings
from tengen.games.core import Game, Observation
from tengen.nets import evaluators
from tengen.search.simulation import simulate


class Line(NamedTuple):
    """One measurement."""

    size: int  # of Go's board; 0 for chess
    net: str
    games: int
    algorithm: str
    simulations: int
    sharpness: float = 1.0
    after: int = 20  # random moves before the roots


GPU = (
    *(Line(9, "b6c96", 4096, algorithm, n) for algorithm in ("puct", "gumbel") for n in (32, 128, 800)),
    Line(9, "b6c96", 4096, "puct", 128, 300.0),
    Line(9, "b6c96", 4096, "gumbel", 128, 30.0),
    *(Line(19, "b10c128", 512, algorithm, 128) for algorithm in ("puct", "gumbel")),
)
# What pgx + mctx are measured for, too.
PEER = (
    Line(9, "b6c96", 4096, "gumbel", 32),
    *(Line(9, "b6c96", 4096, "gumbel", 128, sharpness, after) for sharpness in (1.0, 30.0) for after in (20, 50)),
)
CHESS = tuple(Line(0, "b10c128", 1024, "gumbel", n) for n in (32, 128, 800))
SMALL = tuple(Line(9, net, 256, algorithm, 32) for net in ("b4c32", "b6c96") for algorithm in ("puct", "gumbel"))


def evaluator(game: Game, name: str, sharpness: float) -> tuple[Any, Callable[[Any, Observation], nets.Evaluation]]:
    """Parameters, and the function of them that evaluates observations."""
    ask, state = evaluators.evaluator(nets.fold(nets.build(nets.spec(name), game, nnx.Rngs(0))))

    def evaluate(state: Any, observation: Observation) -> nets.Evaluation:
        found = ask(state, observation)
        return found._replace(logits=found.logits * sharpness)

    return state, evaluate


def positions(game: Game, batch: int, moves: int) -> tuple[Any, Observation]:
    """States and observations after random moves."""
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), batch))

    def play(i: Any, now: Any) -> Any:
        return game.step_and_look(now[0], choose(now[1].legal, i))

    start = (states, jax.jit(jax.vmap(game.look))(states))
    states, look = jax.jit(lambda now: jax.lax.fori_loop(0, moves, play, now))(start)
    return states, look.observation


def bare_seconds(
    state: Any, evaluate: Callable, observation: Observation, repeats: int, evaluations: int = 20
) -> float:
    """Time of one evaluation of the batch; each waits for the one before."""

    def again(_: Any, now: Any) -> Any:
        planes, total = now
        found = evaluate(state, Observation(planes, observation.scalars))
        return planes ^ (found.value > 2)[:, None, None, None], total + found.logits.sum() + found.value.sum()

    loop = jax.jit(lambda planes: jax.lax.fori_loop(0, evaluations, again, (planes, jnp.float32(0))))
    return median_seconds(loop, observation.planes, repeats=repeats) / evaluations


def mean_depth(tree: search.Tree, sample: int = 16) -> float:
    """Over the nodes of some trees."""
    depths = []
    for parents, count in zip(np.asarray(tree.parent[:sample]), np.asarray(tree.used[:sample]), strict=True):
        depth = np.zeros(len(parents), int)
        for node in range(1, count):  # in a tree without reuse, parents come before their children
            depth[node] = depth[parents[node]] + 1
        depths.append(depth[1:count].mean())
    return float(np.mean(depths))


def measure(line: Line, repeats: int, observation: str = "tengen") -> float:
    """Print one line; evaluations per second in search."""
    game = games.make("go", size=line.size, observation=observation) if line.size else games.make("chess")
    state, evaluate = evaluator(game, line.net, line.sharpness)
    states, seen = positions(game, line.games, line.after)
    settings = SearchSettings(algorithm=line.algorithm, simulations=line.simulations)  # type: ignore[arg-type]

    @jax.jit
    def run(state: Any, states: Any) -> Any:
        tree = search.plant(game, settings, states, slots=line.simulations + 1)
        budget = jnp.full(line.games, line.simulations, jnp.int32)
        tree = search.begin(tree, jax.random.key(1), budget, jnp.ones(line.games, bool))
        step = lambda _, tree: simulate(lambda seen: evaluate(state, seen), tree)  # noqa: E731
        tree = jax.lax.fori_loop(0, line.simulations + 1, step, tree)
        return search.summarise(tree, jax.random.key(2)), tree

    start = time.perf_counter()
    _, tree = jax.block_until_ready(run(state, states))
    compiling = time.perf_counter() - start
    bare = bare_seconds(state, evaluate, seen, repeats, line.simulations + 1)
    seconds = median_seconds(lambda: run(state, states)[0], repeats=repeats) / (line.simulations + 1)
    rate = line.games / seconds
    board = f"go {line.size}x{line.size}" if line.size else "chess"
    name = f"{board} {line.net} {line.games} games {line.algorithm} {line.simulations}"
    name += f" after {line.after}" if line.after != 20 else ""
    sharp = f" sharpness {line.sharpness:g}" if line.sharpness != 1 else ""
    print(
        f"{name}{sharp}: bare {line.games / bare:,.0f}/s ({bare * 1e6:.0f} us), search {rate:,.0f}/s "
        f"({seconds * 1e6:.0f} us), share {bare / seconds:.3f}, depth {mean_depth(tree):.1f}, "
        f"first call {compiling:.1f} s",
        flush=True,
    )
    return rate


def measure_mctx(line: Line, repeats: int) -> float:
    """pgx's 9x9 Go or chess and mctx's Gumbel search around the same kind of network; evaluations per second.

    From positions after as many random moves as ours; with the same network, for the planes that pgx has.
    """
    net, batch, simulations = line.net, line.games, line.simulations
    import importlib

    mctx: Any = importlib.import_module("mctx")  # its dataclasses are beyond pyright
    game = games.make("pgx:go_9x9" if line.size else "pgx:chess")
    env = game.env  # type: ignore[attr-defined]
    state, evaluate = evaluator(game, net, line.sharpness)
    states, observation = positions(game, batch, line.after)

    def seen(inner: Any) -> Observation:
        return jax.vmap(lambda one: game.observe(states._replace(inner=one, first=jnp.int32(0))))(inner)

    def recurrent(state: Any, key: Any, action: Any, inner: Any) -> Any:
        mover = inner.current_player
        inner = jax.vmap(env.step)(inner, action)
        found = evaluate(state, seen(inner))
        logits = jnp.where(inner.legal_action_mask, found.logits, jnp.finfo(jnp.float32).min)
        reward = inner.rewards[jnp.arange(batch), mover]
        discount = jnp.where(inner.terminated, 0.0, -1.0)
        value = jnp.where(inner.terminated, 0.0, found.value)
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value), inner

    @jax.jit
    def run(state: Any, inner: Any) -> Any:
        found = evaluate(state, seen(inner))
        root = mctx.RootFnOutput(prior_logits=found.logits, value=found.value, embedding=inner)
        return mctx.gumbel_muzero_policy(
            params=state, rng_key=jax.random.key(0), root=root, recurrent_fn=recurrent,
            num_simulations=simulations, invalid_actions=~inner.legal_action_mask,
        ).action  # fmt: skip

    inner = states.inner
    bare = bare_seconds(state, evaluate, observation, repeats, simulations + 1)
    seconds = median_seconds(run, state, inner, repeats=repeats) / (simulations + 1)
    print(
        f"pgx + mctx {game.name} {net} {batch} games gumbel {simulations} sharpness {line.sharpness:g} "
        f"after {line.after} moves: "
        f"bare {batch / bare:,.0f}/s, "
        f"search {batch / seconds:,.0f}/s, share {bare / seconds:.3f}",
        flush=True,
    )
    return batch / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--small", action="store_true", help="for a CPU")
    parser.add_argument("--chess", action="store_true", help="chess instead of Go")
    parser.add_argument("--mctx", action="store_true", help="only the lines that pgx + mctx are measured for")
    parser.add_argument("--observation", default="tengen", help="of Go: tengen (the default) or katago")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}")
    lines = SMALL if args.small else tuple(dict.fromkeys(GPU + PEER))
    peer = CHESS if args.chess else PEER
    if args.mctx or args.chess:
        lines = peer
    ours = {line: measure(line, args.repeats, args.observation) for line in lines}
    if args.small:
        return
    for line in peer:
        theirs = measure_mctx(line, args.repeats)
        print(f"  ratio to it: {ours[line] / theirs:.2f}", flush=True)


if __name__ == "__main__":
    main()
