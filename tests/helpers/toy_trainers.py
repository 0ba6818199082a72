"""Games that can be solved by hand, and configurations for them."""

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen.config.loading import load_any
from tengen.config.trainers import DQNConfig
from tengen.games.core import Game, NoOptions, Observation


class ToyState(NamedTuple):
    place: Array  # Int32
    moves: Array  # Int32


class Chain(Game[ToyState]):
    """One role walks left or right over seven places from the middle. The left end pays 0.3, the right end 1.

    At the middle place nobody may go left, so that a maximum over all actions would be another one.
    """

    name, version, Options = "chain", 1, NoOptions
    players = ("walker",)
    num_actions, max_moves, planes_shape, num_scalars = 3, 60, (1, 1, 0), 7
    LENGTH: ClassVar[int] = 7

    def __init__(self) -> None:
        self.options = NoOptions()

    def init(self, key: Array) -> ToyState:
        import jax

        return ToyState(jax.random.randint(key, (), 1, self.LENGTH - 1), jnp.int32(0))

    def _play(self, state: ToyState, action: Array) -> ToyState:
        return ToyState(state.place + jnp.where(action == 1, 1, -1), state.moves + 1)

    def legal_actions(self, state: ToyState) -> Array:
        left = state.place != self.LENGTH // 2
        return jnp.stack([left, jnp.bool_(True), jnp.bool_(False)]) & ~self.is_over(state)

    def observe(self, state: ToyState) -> Observation:
        return Observation(jnp.zeros((1, 1, 0), bool), (jnp.arange(self.LENGTH) == state.place).astype(jnp.float32))

    def to_play(self, state: ToyState) -> Array:
        return jnp.int32(0)

    def is_over(self, state: ToyState) -> Array:
        return (state.place <= 0) | (state.place >= self.LENGTH - 1) | (state.moves >= self.max_moves)

    def returns(self, state: ToyState) -> Array:
        pay = jnp.where(state.place <= 0, 0.3, jnp.where(state.place >= self.LENGTH - 1, 1.0, 0.0))
        return jnp.stack([pay, -pay])

    def render(self, state: ToyState) -> str:
        return f"place {state.place}"

    def _action_name(self, state: ToyState, action: int) -> str:
        return ("left", "right", "never")[action]

    def solved(self, gamma: float) -> np.ndarray:
        """Float[7, 2]: what left and right are worth at each place, by value iteration; nan where not legal."""
        worth = np.zeros(self.LENGTH)
        values = np.full((self.LENGTH, 2), np.nan)
        for _ in range(200):
            for place in range(1, self.LENGTH - 1):
                for action, to in enumerate((place - 1, place + 1)):
                    if action == 0 and place == self.LENGTH // 2:
                        continue
                    pay = {0: 0.3, self.LENGTH - 1: 1.0}.get(to)
                    values[place, action] = gamma * worth[to] if pay is None else pay
                worth[place] = np.nanmax(values[place])
        return values


class Turns(Game[ToyState]):
    """Players add 1, 2 or 3 to a sum, in the order 0, 1, 1, 0, 0, 1 ...; it ends at 12 or more, and 12 is worth 1."""

    name, version, Options = "turns", 1, NoOptions
    num_actions, max_moves, planes_shape, num_scalars = 3, 12, (1, 1, 0), 2
    ORDER: ClassVar[tuple[int, ...]] = (0, 1, 1, 0, 0, 1)

    def __init__(self) -> None:
        self.options = NoOptions()

    def init(self, key: Array) -> ToyState:
        return ToyState(jnp.int32(0), jnp.int32(0))

    def _play(self, state: ToyState, action: Array) -> ToyState:
        return ToyState(state.place + action + 1, state.moves + 1)

    def legal_actions(self, state: ToyState) -> Array:
        # No number twice running on the same residue, so that the mask matters.
        return (jnp.arange(3) != state.place % 3) & ~self.is_over(state)

    def observe(self, state: ToyState) -> Observation:
        return Observation(jnp.zeros((1, 1, 0), bool), jnp.stack([state.place, state.moves]).astype(jnp.float32))

    def to_play(self, state: ToyState) -> Array:
        return jnp.asarray(self.ORDER)[state.moves % len(self.ORDER)]

    def is_over(self, state: ToyState) -> Array:
        return state.place >= 12

    def returns(self, state: ToyState) -> Array:
        host = jnp.where(state.place == 12, 1.0, -0.5)
        return jnp.where(self.is_over(state), jnp.stack([host, -host]), 0.0)

    def render(self, state: ToyState) -> str:
        return f"sum {state.place}"

    def _action_name(self, state: ToyState, action: int) -> str:
        return str(action + 1)


SMALL = (
    "players.host=null",
    "agent.games=8",
    "agent.batch=16",
    "agent.net.name=mlp1x16",
    "agent.buffer.capacity=512",
    "agent.first_samples=32",
    "agent.roll_out_samples=16",
    "evaluation.games=16",
    "evaluation.against=[]",
    "checkpoints.interval=1000",
)


def small(*overrides: str) -> DQNConfig:
    """A small training for a game that the program gives; the agent's section is the host's, and the agent has none."""
    texts = {text.partition("=")[0]: text.replace("host.", "agent.", 1) for text in overrides}
    settings = list({**{text.partition("=")[0]: text for text in SMALL}, **_renamed(texts)}.values())
    config: Any = load_any("dqn_hironaka2", settings)
    return replace(config, game=None, reward="returns", host=config.agent, agent=None)


def _renamed(texts: dict[str, str]) -> dict[str, str]:
    return {text.partition("=")[0]: text for text in texts.values()}
