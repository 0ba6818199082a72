"""All of AlphaZero, with Tengen's games, search and networks: tic-tac-toe in a minute or two on a CPU.

    python examples/alpha_zero.py --rounds 30

A round plays games, with a search at every move, and learns from a buffer of the newest positions.
"""

import argparse
from functools import partial

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from tengen import games, match, nets, search
from tengen.match import players
from tengen.nets.evaluators import evaluator

GAMES, STEPS, BUFFER, BATCH = 128, 40, 16_384, 256  # games and steps a round, positions kept, positions in a batch
SEARCH = search.Settings(algorithm="puct", simulations=32)  # with noise at the root


def main(arguments: list[str] | None = None) -> float:
    """Trains a network and returns its share of the points in a match against random play."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--game", default="tic_tac_toe")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args(arguments)
    game = games.make(options.game)
    network, variables = evaluator(nets.build(nets.spec("b2c16"), game, nnx.Rngs(0), dtype="float32"))
    params, fixed = nnx.split_state(variables, nnx.Param, ...)  # for short, the norms keep their first statistics
    whole = partial(nnx.merge_state, fixed)
    optimizer = optax.adam(2e-3)

    @jax.jit
    def play(params, key):  # -> observations, policies, results for the player to move, whether the position counts
        def move(states, key):
            found = search.run(partial(network, whole(params)), game, states, key, SEARCH, temperature=1.0)
            seen, player, over = (jax.vmap(look)(states) for look in (game.observe, game.to_play, game.is_over))
            after, _ = game.step_and_look(states, jnp.maximum(found.action, 0), stay=over)
            return after, (seen, found.policy, player, ~over)

        first, *keys = jax.random.split(key, game.max_moves + 1)
        states = jax.vmap(game.init)(jax.random.split(first, GAMES))
        states, (seen, policy, player, counts) = jax.lax.scan(move, states, jnp.stack(keys))
        result = jax.vmap(game.returns)(states)[jnp.arange(GAMES), player]
        return jax.tree.map(lambda x: jax.lax.collapse(x, 0, 2), (seen, policy, result, counts))

    def loss(params, seen, policy, result, _):
        outputs = network.outputs(whole(params), seen)
        ending = jnp.stack([result > 0, result == 0, result < 0], axis=1)  # win, draw, loss
        errors = map(optax.softmax_cross_entropy, (outputs.policy, outputs.value), (policy, ending))
        return sum(error.mean() for error in errors)

    @jax.jit
    def learn(params, state, rows, key):
        def step(carry, key):
            chosen = jax.random.choice(key, BUFFER, (BATCH,), p=rows[3] / rows[3].sum())
            value, gradient = jax.value_and_grad(loss)(carry[0], *jax.tree.map(lambda x: x[chosen], rows))
            updates, state = optimizer.update(gradient, carry[1])
            return (optax.apply_updates(carry[0], updates), state), value

        (params, state), losses = jax.lax.scan(step, (params, state), jax.random.split(key, STEPS))
        return params, state, losses.mean()

    key, state = jax.random.key(1), optimizer.init(params)
    buffer = jax.tree.map(lambda x: jnp.zeros((BUFFER, *x.shape[1:]), x.dtype), jax.eval_shape(play, params, key))
    for number in range(options.rounds):
        key, playing, learning = jax.random.split(key, 3)
        buffer = jax.tree.map(lambda new, old: jnp.concatenate([new, old])[:BUFFER], play(params, playing), buffer)
        params, state, value = learn(params, state, buffer, learning)
        print(f"round {number + 1}: loss {value:.3f}", flush=True)
    trained = players.policy("alpha_zero", network, game, whole(params))  # the network alone, without a search
    print(played := match.play(game, trained, players.random(game), key, match.MatchSettings(games=200)))
    return played.result.share


if __name__ == "__main__":
    main()
