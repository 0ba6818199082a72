"""Go's GPU program against the plain version: the same results on random games, and the time of both.

    python benchmarks/go_kernel.py

Needs an NVIDIA GPU. Prints, for each setting, how many numbers differed (0 is right) and microseconds per step of the
whole batch, `tree nodes` being states without the list of all positions, as a search keeps them.
"""

import sys

import jax
import jax.numpy as jnp

from tengen import games
from tengen.bench.games import choose
from tengen.bench.timing import median_seconds
from tengen.games.core import Game

SETTINGS = (
    {"ko": "simple", "suicide": False},
    {"ko": "positional", "suicide": False},
    {"ko": "situational", "suicide": True},
)


def differences(game, states, steps: int) -> int:
    """How many numbers of states, masks and observations differ between the two versions in random games."""

    def play(i, carry):
        states, legal, wrong = carry
        actions = choose(legal, i)
        plain = Game.step_and_look(game, states, actions)
        fused = game.fused_step_and_look(states, actions, jnp.zeros(actions.shape, bool))
        unequal = jax.tree.map(lambda a, b: (a != b).sum(), plain, fused)
        return plain[0], plain[1].legal, wrong + sum(jax.tree.leaves(unequal))

    start = (states, jax.vmap(game.look)(states).legal, jnp.int32(0))
    return int(jax.jit(lambda start: jax.lax.fori_loop(0, steps, play, start))(start)[2])


def microseconds(step, states, look, steps: int) -> float:
    """Time of one step of the batch."""
    loop = jax.jit(lambda now: jax.lax.fori_loop(0, steps, lambda i, now: step(now[0], choose(now[1].legal, i)), now))
    return median_seconds(loop, (states, look), repeats=7) / steps * 1e6


def main() -> int:
    if jax.default_backend() != "gpu":
        print("this benchmark needs an NVIDIA GPU; JAX found only", jax.devices()[0].device_kind)
        return 1
    wrong = 0
    for size, batch in ((9, 4096), (19, 512)):
        for setting in SETTINGS:
            game = games.make("go", size=size, **setting)
            states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), batch))
            nodes = jax.vmap(game.split)(states)[0]
            look = jax.jit(jax.vmap(game.look))(states)
            few = jax.tree.map(lambda x: x[:64], states)
            differ = differences(game, few, 150)
            wrong += differ
            plain = microseconds(lambda s, a, g=game: Game.step_and_look(g, s, a), states, look, 100)
            fused = microseconds(game.step_and_look, states, look, 100)
            in_tree = microseconds(game.step_and_look, nodes, look, 100)
            print(
                f"go {size}x{size} batch {batch} {setting}: {differ} differ; plain {plain:.1f} us, "
                f"GPU program {fused:.1f} us ({plain / fused:.1f}x), tree nodes {in_tree:.1f} us",
                flush=True,
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
