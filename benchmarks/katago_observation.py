"""KataGo's observation of Go: how often bounded ladders differ from exact ones, and what it costs.

    python benchmarks/katago_observation.py [SGF ...] --size 9 --positions 10000
    python benchmarks/katago_observation.py --size 9 --batch 4096 --positions 0    # only the time

Positions are those of the games in the SGF files, or of random games if there are none. The time is that of
`step_and_look` with each of the two observations, in random games.
"""

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from tengen import games
from tengen.bench.games import choose
from tengen.bench.timing import median_seconds
from tengen.data.records.records import load_records
from tengen.games import go_ladders
from tengen.games.go import GoState

BATCH = 256


def of_records(paths: list[Path], size: int) -> Iterator[GoState]:
    """The positions of all games on boards of that size; a game ends before a move that the rules forbid."""
    game = games.make("go", size=size, ko="simple", suicide=True, max_moves=10_000)
    step, legal = jax.jit(game.step), jax.jit(game.legal_actions)
    for path in paths:
        for record in load_records(path):
            if record.options["size"] != size:
                continue
            state = jax.jit(game.init)(jax.random.key(0)) if record.start is None else game.from_text(record.start)
            for action in record.actions:
                if not legal(state)[action]:
                    break
                state = step(state, np.int32(action))
                yield jax.device_get(state)


def at_random(size: int, batch: int) -> Iterator[GoState]:
    """The positions of random games."""
    game = games.make("go", size=size)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), batch))
    look = jax.jit(jax.vmap(game.look))(states)
    play = jax.jit(lambda states, legal, key: game.step_and_look(states, choose(legal, key)))
    for number in range(game.max_moves):
        states, look = play(states, look.legal, number)
        host = jax.device_get(states)
        for game_number in np.flatnonzero(~np.asarray(look.over)):
            yield jax.tree.map(lambda leaf, n=game_number: leaf[n], host)


def differing(size: int, positions: list[GoState]) -> tuple[int, int]:
    """In how many positions the bounded reading differs from the exact one, and how many have a ladder at all."""
    limits = (go_ladders.limits(size), go_ladders.full_limits(size))
    bounded, exact = (jax.jit(jax.vmap(partial(go_ladders.read, size=size, limits=limit))) for limit in limits)
    wrong = some = 0
    for begin in range(0, len(positions), BATCH):
        part = positions[begin : begin + BATCH]
        filled = [*part, *[part[0]] * (BATCH - len(part))]
        given = [np.stack([getattr(state, name) for state in filled]) for name in ("chains", "ko")]
        turns = np.array([state.turn for state in filled], np.int32)
        found, truth = (
            np.concatenate(jax.device_get(read(*given, turns)), 1)[: len(part)] for read in (bounded, exact)
        )
        wrong += int((found != truth).any(1).sum())
        some += int(truth.any(1).sum())
    return wrong, some


def microseconds(size: int, batch: int, observation: str, steps: int = 20) -> float:
    """Time of one step of a batch of random games, per game, from their 40th move on."""
    game = games.make("go", size=size, observation=observation)

    def play(i: jax.Array, now: tuple) -> tuple:
        states, look = game.step_and_look(now[0], choose(now[1], now[2] + i))
        # The sum keeps the observation from being left out as unused.
        return states, look.legal, now[2], now[3] + look.observation.planes.sum() + look.observation.scalars.sum()

    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), batch))
    start = states, jax.vmap(game.look)(states).legal, jnp.int32(0), jnp.float32(0)
    loop = jax.jit(lambda now, count: jax.lax.fori_loop(0, count, play, now))
    now = loop(start, 40)
    return median_seconds(lambda now: loop(now, steps), now, repeats=5) / steps / batch * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="SGF files")
    parser.add_argument("--size", type=int, default=9)
    parser.add_argument("--positions", type=int, default=10_000, help="0: none")
    parser.add_argument("--batch", type=int, default=256, help="games at once whose time is measured; 0: none")
    args = parser.parse_args()
    if args.positions:
        source = of_records(args.files, args.size) if args.files else at_random(args.size, BATCH)
        positions = [state for state, _ in zip(source, range(args.positions), strict=False)]
        wrong, some = differing(args.size, positions)
        print(f"{len(positions):,} positions of {args.size}x{args.size}, {some:,} of them with ladders:", end=" ")
        print(f"bounded reading differs from exact in {wrong}")
    if args.batch:
        plain, katago = (microseconds(args.size, args.batch, which) for which in ("tengen", "katago"))
        print(f"{args.batch} games: {plain:.2f} us per game with 12 planes, {katago:.2f} us with 22", end=" ")
        print(f"({katago / plain:.1f} times as long)")


if __name__ == "__main__":
    main()
