"""The network: `net.name: nim_plugin.network:build`."""

from flax import nnx

from tengen.nets import Outputs


class Dense(nnx.Module):
    """Two layers, a policy and a value."""

    def __init__(self, game, rngs, width=64):
        self.first = nnx.Linear(game.num_scalars, width, rngs=rngs)
        self.second = nnx.Linear(width, width, rngs=rngs)
        self.policy = nnx.Linear(width, game.num_actions, rngs=rngs)
        self.value = nnx.Linear(width, 3, rngs=rngs)  # win, draw, loss

    def __call__(self, planes, scalars):
        x = nnx.relu(self.second(nnx.relu(self.first(scalars))))
        return Outputs(self.policy(x), self.value(x))


def build(game, heads, rngs):
    """What Tengen calls."""
    return Dense(game, rngs)
