"""The state of learning, and how compiled programs hold it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from tengen.train.packing import Packing, Tensors

Figures = dict[str, Array]
_MOST_FIGURES = 64


class LearnerState(NamedTuple):
    """Everything that changes while learning. Tensors are {name: Float32[...]}, with names as in `nets.saving`."""

    parameters: Tensors
    statistics: Tensors  # the other variables: running means and variances of the norms, keys of dropout
    average_parameters: Tensors  # moving averages of both, for self-play and export
    average_statistics: Tensors
    optimizer: Any  # what optax keeps
    step: Array  # Int32[]: steps taken
    rate_scale: Array  # Float32[]: the factor of the learning rate that does not follow from the step


class Packings(NamedTuple):
    """How a compiled program packs the tensors of a state, which looks the same before and after the program."""

    parameters: Packing
    statistics: Packing

    @staticmethod
    def of(state: LearnerState) -> "Packings":
        return Packings(Packing(state.parameters), Packing(state.statistics))

    def pack(self, state: LearnerState) -> LearnerState:
        return self._mapped(state, self.parameters.pack, self.statistics.pack)

    def unpack(self, state: LearnerState) -> LearnerState:
        return self._mapped(state, self.parameters.unpack, self.statistics.unpack)

    def _mapped(
        self, state: LearnerState, parameters: Callable[[Tensors], Tensors], statistics: Callable[[Tensors], Tensors]
    ) -> LearnerState:
        return state._replace(
            parameters=parameters(state.parameters),
            statistics=statistics(state.statistics),
            average_parameters=parameters(state.average_parameters),
            average_statistics=statistics(state.average_statistics),
            optimizer=self.parameters.everywhere(parameters, state.optimizer),
        )


PackedStep = Callable[[Array, LearnerState, Packings], tuple[LearnerState, Figures]]
"""step(number, packed state, packings): the packed state after one step, and the step's figures."""


def once(step: PackedStep, state: LearnerState) -> tuple[LearnerState, Figures]:
    packs = Packings.of(state)
    state, figures = step(jnp.int32(0), packs.pack(state), packs)
    return packs.unpack(state), figures


def repeated(step: PackedStep, state: LearnerState, steps: Array) -> tuple[LearnerState, Figures]:
    """The state after that many steps, and the sums of their figures."""
    packs = Packings.of(state)
    names: list[str] = []  # known once the step is traced, which takes too long to do it twice

    def body(number: Array, carry: tuple[LearnerState, Array]) -> tuple[LearnerState, Array]:
        state, figures = step(number, carry[0], packs)
        names[:] = figures
        return state, carry[1] + jnp.pad(jnp.stack(list(figures.values())), (0, _MOST_FIGURES - len(names)))

    state, sums = lax.fori_loop(0, steps, body, (packs.pack(state), jnp.zeros(_MOST_FIGURES)))
    return packs.unpack(state), dict(zip(names, sums[: len(names)], strict=True))
