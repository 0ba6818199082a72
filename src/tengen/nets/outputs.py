"""What a network says about a batch of positions."""

from typing import NamedTuple

from jax import Array

# The logit of an action on a point that is not on the board: never chosen, and harmless in a loss.
OFF_BOARD = -1e9


class Outputs(NamedTuple):
    """Float32, all from the side of the player to move. Heads that the network does not have are None."""

    policy: Array  # [B, A]: logits of the actions; illegal ones are not left out
    value: Array  # [B, 3]: logits of win, draw, loss
    ownership: Array | None = None  # [B, H, W]: tanh gives who owns the point at the end, 1 the mover; 0 off the board
    score: Array | None = None  # [B, 2]: mean of the final score in points, and its standard deviation (above 0)
    opponent_policy: Array | None = None  # [B, A]: logits of the opponent's reply
    moves_left: Array | None = None  # [B]: moves until the game ends, at least 0


class Evaluation(NamedTuple):
    """What a network says about positions, for the player to move."""

    logits: Array  # Float32[..., A]
    value: Array  # Float32[...]: in [-1, 1]
