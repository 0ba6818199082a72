"""The output of a network."""

from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Float32

# The logit of an action on a point off the board: never chosen, and harmless in a loss.
OFF_BOARD = -1e9


class Outputs(NamedTuple):
    """All from the side of the player to move. Heads that the network does not have are None."""

    policy: Float32[Array, "*batch actions"]  # logits of the actions, illegal ones included
    value: Float32[Array, "*batch 3"]  # logits of win, draw, loss
    # tanh: 1 if the mover owns the point; 0 off the board
    ownership: Float32[Array, "*batch height width"] | None = None
    score: Float32[Array, "*batch 2"] | None = None  # mean of the final score in points, and its standard deviation
    opponent_policy: Float32[Array, "*batch actions"] | None = None  # logits of the opponent's reply
    moves_left: Float32[Array, "*batch"] | None = None  # moves until the game ends, at least 0
    extra: dict[str, Float32[Array, "..."]] | None = None  # by name: [*batch, H, W], [*batch, A] or [*batch]

    @classmethod
    def of(cls, found: dict[str, Array]) -> "Outputs":
        """From all outputs by name; those that are not fields are `extra`."""
        extra = {name: output for name, output in found.items() if name not in cls._fields}
        return cls(**{name: output for name, output in found.items() if name in cls._fields}, extra=extra or None)

    def by_name(self) -> dict[str, Any]:
        """All outputs that there are, those of `extra` among them."""
        found = {**self._asdict(), **(self.extra or {})}
        return {name: output for name, output in found.items() if output is not None and name != "extra"}


class Evaluation(NamedTuple):
    """What a search needs from a network, from the side of the player to move."""

    logits: Float32[Array, "*batch actions"]
    value: Float32[Array, "*batch"]  # in [-1, 1]
    score: Float32[Array, "*batch 2"] | None = None  # mean and standard deviation of the final score, if known

    @classmethod
    def of(cls, outputs: Outputs) -> "Evaluation":
        chances = jax.nn.softmax(outputs.value)
        return cls(outputs.policy, chances[:, 0] - chances[:, 2], outputs.score)
