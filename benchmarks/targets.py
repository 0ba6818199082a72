"""How good the policies are that searches make, at positions of recorded games.

    python benchmarks/targets.py GAMES.sgf NET --config go9 --search g16 --search g32 simulations=32 considered=8 \\
        --search p32 algorithm=puct simulations=32

Every move of every position is searched on its own first (PUCT without noise, `--reference` simulations each): what it
is worth. A policy's regret is how much less than the best move its moves are worth, with values from -1 to 1: for a
move that is drawn from it, for its likeliest move, and for the likeliest one on average over `--seeds` searches, which
is what a network can learn. `blind`: how often that average gives the best move less than one in a hundred.

Each `--search` has a name and settings of the section `search`, besides those of the configuration. The column
`improved` is the same search's visits and values turned into a policy as Gumbel's searches do it.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tengen import config, search
from tengen.config.settings.search import SearchSettings
from tengen.data.records.records import Record, load_records
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.jax_setup import keep_compiled
from tengen.nets import saving
from tengen.nets.evaluators import evaluator
from tengen.run import networks
from tengen.search import selection
from tengen.search.walk import row_at

_AT_ONCE = 256  # moves that are searched at once for the reference
_SURE = 0.9  # positions that the network judges beyond this are left out
_UNLIKELY = 0.01
_TINY = 1e-9
_NO_OTHERS = "selfplay.cheap_simulations=1", "selfplay.stages=[]"  # may not be more than `search.simulations`

Evaluate = Callable[[Any], Any]


class Policies(NamedTuple):
    """What searches of all positions found: [S, N, A], one entry for each seed."""

    code: np.ndarray  # the policy that self-play would learn
    improved: np.ndarray


class Judgement(NamedTuple):
    """Means over the positions, with the standard error of the first."""

    drawn: float
    error: float
    likeliest: float
    learned: float
    blind: float
    entropy: float
    spread: float  # how far the policies of single searches are from their average, in nats


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("games", type=Path, help="a file of records, as `tengen match` writes them")
    parser.add_argument("net", help="a network or a run")
    parser.add_argument("--config", required=True, help="whose section `search` the searches begin with")
    parser.add_argument("--search", nargs="+", action="append", required=True, metavar=("NAME", "KEY=VALUE"))
    parser.add_argument("--positions", type=int, default=160)
    parser.add_argument("--plies", type=int, nargs=2, default=(6, 60), metavar=("FIRST", "LAST"))
    parser.add_argument("--reference", type=int, default=40, help="simulations for each move (%(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="searches of each kind (%(default)s)")
    args = parser.parse_args()
    keep_compiled()
    try:
        kinds = {
            name: config.load(args.config, [*_NO_OTHERS, *(f"search.{each}" for each in more)]).search
            for name, *more in args.search
        }
        path = networks.find(args.net).path
        game = saving.read(path).make_game()
        function, parameters = evaluator(saving.load(path, game))
        evaluate = jax.tree_util.Partial(function, parameters)
        states = positions(game, evaluate, load_records(args.games), args.positions, args.plies)
        worths = moves_worths(game, evaluate, states, args.reference)
        print(f"{len(worths)} positions, {np.isfinite(worths).sum()} moves")
        for name, settings in kinds.items():
            found = searched(game, evaluate, states, settings, args.seeds)
            for what, policies in found._asdict().items():
                print(line(f"{name}, {what}", judged(policies, worths)), flush=True)
    except TengenError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def positions(
    game: Game, evaluate: Evaluate, records: Sequence[Record], count: int, plies: tuple[int, int], seed: int = 0
) -> Any:
    """States [N, ...] of at most `count` games, one of each, where the network does not think that all is decided."""
    rng, first = np.random.default_rng(seed), plies[0]
    long = [record for record in records if record.game == game.name and len(record.actions) > first]
    if not long:
        raise TengenError(f"no game of {game.name} with more than {first} moves")
    chosen = [rng.integers(first, min(plies[1], len(record.actions) - 1) + 1) for record in long]
    actions = np.zeros((len(long), max(chosen)), np.int32)
    for row, record, ply in zip(actions, long, chosen, strict=True):
        row[:ply] = record.actions[:ply]
    states = _replayed(game, actions, jnp.asarray(chosen))
    values = np.asarray(evaluate(jax.vmap(game.observe)(states)).value)
    kept = np.flatnonzero(np.abs(values) < _SURE)[:count]
    if not len(kept):
        raise TengenError("the network thinks that every position is decided")
    return jax.tree.map(lambda leaf: leaf[kept], states)


@partial(jax.jit, static_argnums=0)
def _replayed(game: Game, actions: Array, lengths: Array) -> Any:
    def move(ply: Array, states: Any) -> Any:
        after, still = jax.vmap(game.step)(states, actions[:, ply]), ply < lengths
        return jax.tree.map(
            lambda new, old: jnp.where(still.reshape(-1, *[1] * (new.ndim - 1)), new, old), after, states
        )

    first = jax.vmap(game.init)(jax.random.split(jax.random.key(0), len(actions)))
    return lax.fori_loop(0, actions.shape[1], move, first)


def moves_worths(game: Game, evaluate: Evaluate, states: Any, simulations: int) -> np.ndarray:
    """Float[N, A]: what each move is worth for the player to move, by a search of its own; -inf if it is illegal."""
    settings = SearchSettings(algorithm="puct", simulations=simulations, noise_share=0.0, forced_playouts=0.0)
    legal = np.asarray(jax.vmap(game.legal_actions)(states))
    worths, pairs = np.full(legal.shape, -np.inf), np.argwhere(legal)
    for start in range(0, len(pairs), _AT_ONCE):
        part = pairs[start : start + _AT_ONCE]
        padded = np.resize(part, (_AT_ONCE, 2))
        before = jax.tree.map(lambda leaf, rows=padded[:, 0]: leaf[rows], states)
        after = jax.vmap(game.step)(before, jnp.asarray(padded[:, 1], jnp.int32))
        mover, following = (np.asarray(jax.vmap(game.to_play)(each)) for each in (before, after))
        over, returns = np.asarray(jax.vmap(game.is_over)(after)), np.asarray(jax.vmap(game.returns)(after))
        value = np.asarray(_search(game, evaluate, after, settings, 0)[0].value)
        value = np.where(over, returns[np.arange(_AT_ONCE), mover], np.where(following == mover, value, -value))
        worths[part[:, 0], part[:, 1]] = value[: len(part)]
        print(f"{start + len(part):,} of {len(pairs):,} moves", file=sys.stderr, flush=True)
    return worths


def searched(game: Game, evaluate: Evaluate, states: Any, settings: SearchSettings, seeds: int) -> Policies:
    """Policies of `seeds` searches of every position."""
    found = [_search(game, evaluate, states, settings, seed) for seed in range(seeds)]
    both = [result.policy for result, _ in found], [improved for _, improved in found]
    return Policies(*(np.stack([np.asarray(each, np.float64) for each in policies]) for policies in both))


def _search(
    game: Game, evaluate: Evaluate, states: Any, settings: SearchSettings, seed: int
) -> tuple[search.Result, Array]:
    """The results at the roots, and their improved policies Float[N, A]."""
    tree = search.plant(game, settings, jax.tree.map(jnp.copy, states))
    everywhere = jnp.ones(len(tree.root), bool)
    begin, end = jax.random.split(jax.random.key(seed))
    tree = search.begin(tree, begin, jnp.where(everywhere, settings.simulations, 0), everywhere)
    return _run(evaluate, tree, end, settings.simulations + 1)  # the root's own evaluation is one of them


@jax.jit
def _run(evaluate: Evaluate, tree: Any, key: Array, steps: Array) -> tuple[search.Result, Array]:
    tree = lax.fori_loop(0, steps, lambda _, tree: search.simulate(evaluate, tree), tree)
    rows = jax.vmap(lambda tree: row_at(tree, tree.root, None))(tree)
    # As Gumbel's searches weight values if these count as they are.
    improved = selection.improved_policy(rows, replace(tree.settings, value_scale=1.0, value_range=2.0))
    return search.summarise(tree, key), improved


def judged(policies: np.ndarray, worths: np.ndarray) -> Judgement:
    """Policies [S, N, A] by what the moves are worth [N, A]."""
    best, rows = worths.max(-1, keepdims=True), np.arange(len(worths))
    regret = np.where(np.isfinite(worths), best - worths, 0)
    average = policies.mean(0)
    drawn = (policies * regret).sum(-1).mean(0)
    apart = (policies * (np.log(policies + _TINY) - np.log(average + _TINY))).sum(-1)
    return Judgement(
        drawn=drawn.mean(),
        error=drawn.std() / len(drawn) ** 0.5,
        likeliest=regret[rows, policies.argmax(-1)].mean(),
        learned=regret[rows, average.argmax(-1)].mean(),
        blind=(average[rows, worths.argmax(-1)] < _UNLIKELY).mean(),
        entropy=-(policies * np.log(policies + _TINY)).sum(-1).mean(),
        spread=apart.mean(),
    )


def line(name: str, found: Judgement) -> str:
    return (
        f"{name}: regret {found.drawn:.4f} +- {found.error:.4f} drawn, {found.likeliest:.4f} likeliest, "
        f"{found.learned:.4f} learned; blind {100 * found.blind:.0f} %, entropy {found.entropy:.2f}, "
        f"apart {found.spread:.3f}"
    )


if __name__ == "__main__":
    sys.exit(main())
