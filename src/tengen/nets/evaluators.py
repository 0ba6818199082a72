"""A network as the function that searches and players ask."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from flax import nnx

from tengen import nets
from tengen.games.core import Game, Observation
from tengen.nets import saving
from tengen.nets.outputs import Evaluation


@dataclass(frozen=True)
class Evaluator:
    """The shape of a network without its parameters; equal for all networks of one spec, so they share programs."""

    graph: Any

    def __call__(self, params: Any, observation: Observation) -> Evaluation:
        """What the network with these parameters says about [B, ...] positions."""
        outputs = self.outputs(params, observation)
        chances = jax.nn.softmax(outputs.value)
        return Evaluation(outputs.policy, chances[:, 0] - chances[:, 2])

    def outputs(self, params: Any, observation: Observation) -> nets.Outputs:
        """All that its heads say about [B, ...] positions."""
        return nnx.merge(self.graph, params)(observation.planes, observation.scalars)


def saved(path: Path, game: Game, dtype: nets.Dtype = "bfloat16") -> tuple[Evaluator, Any]:
    """How a saved network is asked, and its parameters; folded."""
    return evaluator(nets.fold(saving.load(path, game, dtype=dtype)))


def evaluator(net: nets.Network) -> tuple[Evaluator, Any]:
    """How a network is asked, and its parameters. Fold it first, if it shall be fast."""
    graph, params = nnx.split(net)
    return Evaluator(graph), params
