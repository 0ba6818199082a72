"""How good the policies are that searches make, at positions of recorded games.

    python benchmarks/targets.py GAMES.sgf NET --config go9 --search g16 --search g32 simulations=32 considered=8 \\
        --search p32 algorithm=puct simulations=32

Every move of every position is searched on its own first (PUCT without noise and points, `--reference` simulations
each): what it is worth, from -1 to 1. The best of these many values is too high, so that every regret is, by as much.

Each `--search` has a name and settings of the section `search`, besides those of the configuration. Its `target` is the
policy that self-play learns from; `improved` is a policy made of the same visits and values as Gumbel's searches make
theirs. The first line is the network's own policy. What is printed of each:

    drawn      how much less than the best move a move is worth that is drawn from the policy, with a standard error,
               and in brackets the difference from the first search's target
    likeliest  the same for its likeliest move
    learned    the same for the likeliest move on average over `--seeds` searches, which a network can learn
    blind      how often that average gives the best moves less than one in a hundred
    entropy    of the policy, in nats
    apart      how far the policies of single searches are from their average (KL divergence, in nats)
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
from tengen.commands.arguments import positive
from tengen.config.settings.search import SearchSettings
from tengen.data.format.identity import plain_options
from tengen.data.records.records import Record, load_records
from tengen.errors import TengenError
from tengen.games.batching import choose
from tengen.games.core import Game
from tengen.jax_setup import keep_compiled
from tengen.nets import evaluators
from tengen.run import networks
from tengen.search import selection
from tengen.search.walk import row_at
from tengen.words import counted

_AT_ONCE = 256  # moves that are searched at once for the reference
_SURE = 0.9  # positions that the network judges beyond this are left out
_UNLIKELY = 0.01
_TINY = 1e-9
_NO_OTHERS = "selfplay.cheap_simulations=1", "selfplay.stages=[]"  # these may not exceed `search.simulations`
_FREE = {"komi": None, "observation": None}  # options in which games and network may differ

Evaluate = Callable[[Any], Any]


class Policies(NamedTuple):
    """What searches of all positions found: [S, N, A], one entry for each seed."""

    target: np.ndarray
    improved: np.ndarray


class Judgement(NamedTuple):
    """See above; `drawn` is [N], the others are means."""

    drawn: np.ndarray
    likeliest: float
    learned: float
    blind: float
    entropy: float
    apart: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("games", type=Path, help="a file of records, as `tengen match` writes them")
    parser.add_argument("net", help="a network or a run")
    parser.add_argument("--config", required=True, help="the configuration whose `search` settings are the defaults")
    parser.add_argument(
        "--search", nargs="+", action="append", required=True, metavar=("NAME", "KEY=VALUE"), help="may be repeated"
    )
    parser.add_argument("--positions", type=positive, default=160, help="at most, one of each game (%(default)s)")
    parser.add_argument(
        "--plies", type=positive, nargs=2, default=(6, 60), metavar=("FIRST", "LAST"), help="moves before them (6 60)"
    )
    parser.add_argument("--reference", type=positive, default=40, help="simulations for each move (%(default)s)")
    parser.add_argument("--seeds", type=positive, default=3, help="searches of each position (%(default)s)")
    args = parser.parse_args()
    names = [name for name, *_ in args.search]
    if any("=" in name for name in names) or len(set(names)) < len(names):
        parser.error(f"--search: expected a different name first in each, got {', '.join(names)}")
    if args.plies[0] > args.plies[1]:
        parser.error(f"--plies: expected FIRST <= LAST, got {args.plies[0]} {args.plies[1]}")
    keep_compiled()
    try:
        kinds = {
            name: config.load(args.config, [*_NO_OTHERS, *(f"search.{each}" for each in more)]).search
            for name, *more in args.search
        }
        network = networks.find(args.net)
        game = network.saved.make_game()
        evaluate = partial(*evaluators.saved(network.path, game))
        states = positions(game, evaluate, load_records(args.games), args.positions, args.plies)
        worths = moves_worths(game, evaluate, states, args.reference)
        print(f"{counted(len(worths), 'position')}, {np.isfinite(worths).sum():,} moves")
        print(line("the network", judged(prior(game, evaluate, states)[None], worths)))
        first: np.ndarray | None = None
        for name, settings in kinds.items():
            for what, policies in searched(game, evaluate, states, settings, args.seeds)._asdict().items():
                found = judged(policies, worths)
                print(line(f"{name}, {what}", found, first), flush=True)
                first = found.drawn if first is None else first
    except TengenError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def positions(
    game: Game, evaluate: Evaluate, records: Sequence[Record], count: int, plies: tuple[int, int], seed: int = 0
) -> Any:
    """States [N, ...] of at most `count` games, one of each, where the network does not think that all is decided."""
    rng, first = np.random.default_rng(seed), plies[0]
    rules = plain_options(game)
    long = [
        record
        for record in records
        if record.game == game.name and record.start is None and len(record.actions) > first
        if {**rules, **record.options, **_FREE} == {**rules, **_FREE}
    ]
    if not long:
        raise TengenError(
            f"no game of {game.name} with the network's rules, the usual start and more than {first} moves"
        )
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


def prior(game: Game, evaluate: Evaluate, states: Any) -> np.ndarray:
    """Float[N, A]: the network's policy."""
    logits = evaluate(jax.vmap(game.observe)(states)).logits.astype(jnp.float32)
    legal = jax.vmap(game.legal_actions)(states)
    return np.asarray(selection.softmax(jnp.where(legal, logits, -jnp.inf)), np.float64)


@partial(jax.jit, static_argnums=0)
def _replayed(game: Game, actions: Array, lengths: Array) -> Any:
    def move(ply: Array, states: Any) -> Any:
        after, still = jax.vmap(game.step)(states, actions[:, ply]), ply < lengths
        return jax.tree.map(partial(choose, still), after, states)

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
        value = np.asarray(search.run(evaluate, game, after, jax.random.key(0), settings).value)
        value = np.where(over, returns[np.arange(_AT_ONCE), mover], np.where(following == mover, value, -value))
        worths[part[:, 0], part[:, 1]] = value[: len(part)]
        print(f"{start + len(part):,} of {len(pairs):,} moves", file=sys.stderr, flush=True)
    return worths


def searched(game: Game, evaluate: Evaluate, states: Any, settings: SearchSettings, seeds: int) -> Policies:
    """Policies of `seeds` searches of every position."""
    found = [_policies(evaluate, game, settings, states, jax.random.key(seed)) for seed in range(seeds)]
    return Policies(
        *(np.stack([np.asarray(each, np.float64) for each in policies]) for policies in zip(*found, strict=True))
    )


@partial(jax.jit, static_argnums=(0, 1, 2))
def _policies(evaluate: Evaluate, game: Game, settings: SearchSettings, states: Any, key: Array) -> tuple[Array, Array]:
    """Float[N, A] each, as in `Policies`."""
    begin, end = jax.random.split(key)
    tree = search.plant(game, settings, states, settings.simulations + 1)
    budget = jnp.full(len(tree.root), settings.simulations)
    tree = search.finish(evaluate, search.begin(tree, begin, budget, budget > 0))
    rows = jax.vmap(lambda tree: row_at(tree, tree.root, None))(tree)
    # As Gumbel's searches weight values if these count as they are.
    improved = selection.improved_policy(rows, replace(settings, value_scale=1.0, value_range=2.0))
    return search.summarise(tree, end).policy, improved


def judged(policies: np.ndarray, worths: np.ndarray) -> Judgement:
    """Policies [S, N, A] by what the moves are worth [N, A]."""
    best, rows = worths.max(-1, keepdims=True), np.arange(len(worths))
    regret = np.where(np.isfinite(worths), best - worths, 0)
    average = policies.mean(0)
    apart = (policies * (np.log(policies + _TINY) - np.log(average + _TINY))).sum(-1)
    return Judgement(
        drawn=(policies * regret).sum(-1).mean(0),
        likeliest=regret[rows, policies.argmax(-1)].mean(),
        learned=regret[rows, average.argmax(-1)].mean(),
        blind=((average * (worths == best)).sum(-1) < _UNLIKELY).mean(),
        entropy=-(policies * np.log(policies + _TINY)).sum(-1).mean(),
        apart=apart.mean(),
    )


def line(name: str, found: Judgement, first: np.ndarray | None = None) -> str:
    """`first` is the regret of moves drawn from another policy, to compare with."""
    than_first = "" if first is None else f" ({mean_and_error(found.drawn - first)})"
    return (
        f"{name}: drawn {mean_and_error(found.drawn)}{than_first}, likeliest {found.likeliest:.4f}, "
        f"learned {found.learned:.4f}, blind {100 * found.blind:.0f} %, entropy {found.entropy:.2f}, "
        f"apart {found.apart:.3f}"
    )


def mean_and_error(values: np.ndarray) -> str:
    return f"{values.mean():.4f} +- {values.std() / len(values) ** 0.5:.4f}"


if __name__ == "__main__":
    sys.exit(main())
