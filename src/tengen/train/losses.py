"""The losses: one per head, each a mean over the rows that have its target, weighted by the weights of the rows.

So only `LossSettings` decides how heads compare, however many rows lack a target.
"""

import math
from collections.abc import Callable, Iterable, Mapping

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Float32, Shaped

from tengen import importing
from tengen.config.settings.train import LossSettings
from tengen.data.format.rows import is_unknown
from tengen.errors import OptionError
from tengen.games.targets import OWNERSHIP, SCORE, Target
from tengen.nets.outputs import OFF_BOARD, Outputs

Batch = Mapping[str, Array]
Rows = Float32[Array, " batch"]
Scalar = Float32[Array, ""]
Figures = dict[str, Array]
PerAction = Float[Array, "batch actions"]
Outcomes = Float32[Array, "batch 3"]  # win, draw, loss
Shares = float | Float32[Array, "batch 1"]

# Where errors stop being squared, in points and moves: one odd game should not outweigh the batch. KataGo has the first
# two.
MEAN_KNEE = 12.0
SPREAD_KNEE = 10.0
MOVES_KNEE = 20.0
# The ratio of a normal distribution's standard deviation to its mean absolute deviation.
_SPREAD_PER_ERROR = math.sqrt(math.pi / 2)


def losses(
    outputs: Outputs, batch: Batch, settings: LossSettings, targets: Iterable[Target] = (), halves_draws: bool = False
) -> tuple[Scalar, Figures]:
    """The loss to minimise, and what to show: each head's loss before its weight, and other figures.

    `batch` holds rows (see `data.format.rows`) with planes unpacked. A head that the network has needs its target
    there. `targets` are those of the game, for the outputs `extra`; `halves_draws` makes a draw half a win and half a
    loss.
    """
    weights = vars(settings)
    weight = batch["weight"].astype(jnp.float32)
    found: Figures = {}
    found["policy"], figures = _policy(outputs.policy, batch["policy"], weight * batch["policy_weight"])
    outcome = batch["outcome"].astype(jnp.float32)
    if halves_draws:
        outcome = outcome + outcome[:, 1:2] * jnp.array([0.5, -1.0, 0.5])
    found["value"], more = _value(outputs.value, outcome, batch, weight, settings.search_share)
    final = weight * batch.get("final_weight", 1.0)
    figures |= more
    if outputs.opponent_policy is not None:
        reply_weight = weight * batch["opponent_weight"]
        found["opponent_policy"], _ = _policy(outputs.opponent_policy, batch["opponent_policy"], reply_weight)
    if outputs.moves_left is not None:
        left, known = _known(batch["moves_left"], weight)
        missed = outputs.moves_left - left
        found["moves_left"] = mean(optax.huber_loss(missed, delta=MOVES_KNEE), known)
        figures["moves_left_error"] = mean(jnp.abs(missed), known)
    given = outputs.by_name()
    for target in {target.name: target for target in (OWNERSHIP, SCORE, *targets)}.values():
        if target.name in given:
            more, seen = _target(target, given[target.name], batch, final)
            found |= more
            figures |= seen
            chosen = settings.weight(target.name)
            weights = dict.fromkeys(more, target.weight if chosen is None else chosen) | weights
    total = jnp.sum(jnp.stack([weights[name] * loss for name, loss in found.items()]))
    return total, {"loss": total, **{f"{name}_loss": loss for name, loss in found.items()}, **figures}


def _known(target: Shaped[Array, "batch ..."], weight: Rows) -> tuple[Array, Rows]:
    """The target with zeros where it is unknown, and the weights of the rows, 0 where it is unknown."""
    unknown = is_unknown(target)
    weight = jnp.where(unknown.reshape(len(target), -1).any(-1), 0, weight)
    return jnp.where(unknown, jnp.zeros_like(target), target), weight


def mean(values: Rows, weight: Rows) -> Scalar:
    """The weighted mean; 0 if nothing has weight."""
    total = jnp.sum(weight)
    # A row without weight may hold anything, and its loss may not be finite.
    weighed = jnp.sum(jnp.where(weight > 0, values, 0) * weight)
    return jnp.where(total > 0, weighed / jnp.where(total > 0, total, 1), 0)


def value_target(outcome: Outcomes, search_value: Rows, logits: Outcomes, share: Shares) -> Outcomes:
    """Win, draw, loss: a mix of the outcome and, with weight `share`, the value of the search.

    The search's value says how much more likely a win is than a loss, and nothing about draws: their probability stays
    what the network predicts, as far as the value leaves room for it.
    """
    if isinstance(share, float | int) and share == 0:
        return outcome
    value = jnp.clip(search_value, -1, 1)
    draw = jnp.minimum(jax.lax.stop_gradient(jax.nn.softmax(logits))[:, 1], 1 - jnp.abs(value))
    searched = jnp.stack([(1 - draw + value) / 2, draw, (1 - draw - value) / 2], -1)
    return (1 - share) * outcome + share * searched


def _cross_entropy(logits: Float32[Array, "batch classes"], target: Float32[Array, "batch classes"]) -> Rows:
    """For targets that sum to 1. Where the target is 0 the logit may be -inf."""
    return -jnp.sum(jnp.where(target > 0, target * jax.nn.log_softmax(logits), 0), -1)


def _policy(logits: PerAction, target: PerAction, weight: Rows) -> tuple[Scalar, Figures]:
    target = target.astype(jnp.float32)
    loss = mean(_cross_entropy(logits, target), weight)
    share = jax.nn.softmax(logits)
    entropy = -jnp.sum(jnp.where(share > 0, share * jax.nn.log_softmax(logits), 0), -1)
    target_entropy = -jnp.sum(jnp.where(target > 0, target * jnp.log(jnp.where(target > 0, target, 1)), 0), -1)
    hit = (jnp.argmax(logits, -1) == jnp.argmax(target, -1)).astype(jnp.float32)
    figures = {"policy_entropy": entropy, "policy_target_entropy": target_entropy, "policy_accuracy": hit}
    return loss, {name: mean(figure, weight) for name, figure in figures.items()}


def _value(logits: Outcomes, outcome: Outcomes, batch: Batch, weight: Rows, share: float) -> tuple[Scalar, Figures]:
    shares: Shares = share
    if "value_weight" in batch:  # the loss is linear in the target, so each row has a share and a weight
        total = (1 - share) * batch["value_weight"] + share * batch["search_weight"]
        shares = share and (share * batch["search_weight"] / jnp.where(total > 0, total, 1))[:, None]
        weight = weight * total
    target = value_target(outcome, batch["search_value"].astype(jnp.float32), logits, shares)
    predicted = jax.nn.softmax(logits)
    missed = (predicted[:, 0] - predicted[:, 2]) - (outcome[:, 0] - outcome[:, 2])
    return mean(_cross_entropy(logits, target), weight), {"value_mse": mean(jnp.square(missed), weight)}


def _score(score: Float32[Array, "batch 2"], target: Rows, weight: Rows, name: str) -> tuple[Figures, Figures]:
    missed = score[:, 0] - target
    # The spread learns how far off the mean is, but must not move it.
    error = jax.lax.stop_gradient(jnp.abs(missed))
    far = optax.huber_loss(missed, delta=MEAN_KNEE)
    spread = optax.huber_loss(score[:, 1] - _SPREAD_PER_ERROR * error, delta=SPREAD_KNEE)
    found = {f"{name}_mean": mean(far, weight), f"{name}_spread": mean(spread, weight)}
    return found, {f"{name}_error": mean(error, weight)}


# Of each entry [B, ...], apart from `cross_entropy`, which is one number for all entries of a row.
_LOSSES: dict[str, Callable[[Array, Array], Array]] = {
    "squared": lambda output, target: jnp.square(output - target) / 2,
    "huber": lambda output, target: optax.huber_loss(output, target),
    "binary": lambda output, target: jax.nn.softplus(output) - target * output,
    "cross_entropy": lambda output, target: _cross_entropy(output, target),
    # tanh of the output is between -1 and 1 as the target is: a point is the mover's with chance sigmoid(2 output).
    "ownership": lambda output, target: jax.nn.softplus(2 * output) - (1 + target) * output,
}


def _target(target: Target, output: Array, batch: Batch, weight: Rows) -> tuple[Figures, Figures]:
    """The losses of a target that a game declares, and other figures."""
    wanted, weight = _known(batch[target.name], weight)
    wanted = wanted.astype(jnp.float32)
    if target.loss == "score":
        return _score(output, wanted, weight, target.name)
    on = jnp.ones(wanted.shape, bool)
    if target.per == "point":
        on = batch["planes"][..., 0]
    if target.loss == "cross_entropy":
        output, wanted = (x.reshape(len(x), -1) for x in (jnp.where(on, output, OFF_BOARD), wanted))
    each = target.loss(output, wanted) if callable(target.loss) else _LOSSES[target.loss](output, wanted)
    if each.shape not in (on.shape[:1], on.shape):
        expected = f"one number per row, {[len(on)]}, or per entry, {list(on.shape)}, got {list(each.shape)}"
        raise OptionError(f"{importing.where(target.loss)}: the loss of {target.name} must give {expected}")
    if each.ndim == 1:
        return {target.name: mean(each, weight)}, {}
    axes = tuple(range(1, each.ndim))
    return {target.name: mean(jnp.sum(jnp.where(on, each, 0), axes) / jnp.maximum(jnp.sum(on, axes), 1), weight)}, {}
