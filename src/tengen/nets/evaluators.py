"""A network as a function of its parameters, for search and players."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from flax import nnx

from tengen import nets
from tengen.games.core import Game, Observation
from tengen.nets import models, saving
from tengen.nets.models import PythonModel
from tengen.nets.outputs import Evaluation


@dataclass(frozen=True)
class Evaluator:
    """A network without its parameters; equal for all networks of one spec, so they share compiled programs."""

    graph: Any
    on_host: ClassVar[bool] = False  # it can be compiled, unlike a model of another framework

    def __call__(self, params: Any, observation: Observation) -> Evaluation:
        """Policy and value of a batch of positions, and the score if the network has that head."""
        return Evaluation.of(self.outputs(params, observation))

    def outputs(self, params: Any, observation: Observation) -> nets.Outputs:
        return nnx.merge(self.graph, params)(observation.planes, observation.scalars)


def saved(path: Path, game: Game, dtype: nets.Dtype = "bfloat16") -> tuple[Evaluator | PythonModel, Any]:
    """The evaluator of a saved network and its parameters, folded; or a model, `python:package.module:function`."""
    if models.is_model(path):
        return models.load(str(path), game), ()
    return evaluator(nets.fold(saving.load(path, game, dtype=dtype)))


def evaluator(net: nets.Network) -> tuple[Evaluator, Any]:
    """The evaluator of a network and its parameters. Fold the network first for speed."""
    graph, params = nnx.split(net)
    return Evaluator(graph), params
