"""Training targets that a game declares besides its result: what the network should also learn about the end of a game.

    extra_targets = (Target("survivors", "point", loss="binary", weight=0.2, sides="each"),)

`Game.final_targets` gives their values; a network learns those that are among its heads (`net.heads`).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Array

from tengen.errors import OptionError
from tengen.schema import unknown

Per = Literal["point", "action", "number"]
Sides = Literal["opposite", "same", "each"]
LossFunction = Callable[[Array, Array], Array]
"""(outputs [B, ...], targets Float32[B, ...]) -> the loss of each entry [B, ...], or of each row [B]."""

LOSSES = {
    "squared": "half the squared error",
    "huber": "as squared, but a straight line for errors beyond 1",
    "binary": "cross-entropy of a probability; the output is its logit and the target lies in [0, 1]",
    "cross_entropy": "cross-entropy of one distribution over all points or actions; the outputs are its logits",
    "ownership": "cross-entropy of who owns a point; tanh of the output and the target lie in [-1, 1]",
    "score": "a mean and a standard deviation, two outputs for one number; both Huber losses",
}
"""Losses by name, and what the outputs of the head mean."""

# Other outputs of a network and other fields of a row.
_TAKEN = {
    *("policy", "policy_weight", "value", "opponent_policy", "opponent_weight", "moves_left", "planes", "scalars"),
    *("outcome", "search_value", "to_play", "ply", "weight", "game", "search_share", "score_mean", "score_spread"),
    "extra",
}
# Engines and pictures use these two, so they always mean the same.
_KNOWN = {"ownership": ("point", "ownership"), "score": ("number", "score")}
_TYPES = {"int8", "float16", "float32"}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class Target:
    """One number per point, per action, or per game, known when the game has ended.

    `sides` says how `final_targets` gives it: for player 0, and negated for player 1 (`opposite`), the same for both
    (`same`), or with a first axis of two, a value for each player (`each`).
    """

    name: str
    per: Per
    loss: str | LossFunction = "squared"
    weight: float = 1.0  # of the loss; `train.loss.extra` can change it
    sides: Sides = "opposite"
    dtype: str = "float32"  # in rows: int8, float16 or float32

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise OptionError(f"target {self.name}: {problem}")

    def _problems(self) -> Iterator[str]:
        if not _NAME.fullmatch(self.name):
            yield "expected a name of small letters, digits and _, at most 40 of them"
        if self.name in _TAKEN:
            yield "rows and networks have something else of this name, expected another name"
        if self.per not in ("point", "action", "number"):
            yield f"per: expected point, action or number, got {self.per!r}"
        if not callable(self.loss) and self.loss not in LOSSES:
            yield f"loss: {unknown('loss', str(self.loss), LOSSES)}; a function is also possible"
        if self.sides not in ("opposite", "same", "each"):
            yield f"sides: expected opposite, same or each, got {self.sides!r}"
        if self.dtype not in _TYPES:
            yield f"dtype: expected one of {', '.join(sorted(_TYPES))}, got {self.dtype!r}"
        if self.name in _KNOWN and (self.per, self.loss) != _KNOWN[self.name]:
            yield f"expected per {' with the loss '.join(_KNOWN[self.name])}; choose another name otherwise"
        if self.loss == "score" and self.per != "number":
            yield "loss: score is for one number per game"
        if self.loss == "cross_entropy" and self.per == "number":
            yield "loss: cross_entropy is for one distribution over points or actions"

    @property
    def outputs(self) -> int:
        """Outputs of the head for each entry."""
        return 2 if self.loss == "score" else 1

    def seen_by(self, value: Any, player: Any) -> Any:
        """[E, M, ...]: the values [E, ...] of E games for the players (Int8[E, M]) of their moves. NumPy or JAX."""
        if self.sides == "each":
            return value[np.arange(len(value))[:, None], player]
        sign = 1 - 2 * player if self.sides == "opposite" else 1 + 0 * player
        return value[:, None] * sign.reshape(*player.shape, *[1] * (value.ndim - 1)).astype(value.dtype)

    def shape(self, planes_shape: tuple[int, int, int], num_actions: int) -> tuple[int, ...]:
        """The shape of the target in one row."""
        return {"point": planes_shape[:2], "action": (num_actions,), "number": ()}[self.per]


OWNERSHIP = Target("ownership", "point", loss="ownership", weight=0.5, dtype="int8")
"""Who owns each point at the end: 1 player 0, -1 player 1, 0 neither. Its weight is `train.loss.ownership`."""

SCORE = Target("score", "number", loss="score", weight=0.003)
"""By how many points player 0 is ahead. Its weights are `train.loss.score_mean` and `train.loss.score_spread`."""
