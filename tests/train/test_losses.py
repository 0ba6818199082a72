"""Losses against a slow version in plain NumPy, and their gradients against differences of that version."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tengen.config.settings.train import LossSettings
from tengen.data.format.rows import UNKNOWN
from tengen.errors import OptionError
from tengen.games.targets import Target
from tengen.nets.outputs import OFF_BOARD, Outputs
from tengen.train.losses import MEAN_KNEE, MOVES_KNEE, SPREAD_KNEE, losses, mean, value_target

B, H, W, A = 5, 3, 3, 10
SETTINGS = LossSettings(
    policy=1.1,
    value=0.7,
    search_share=0.3,
    opponent_policy=0.2,
    ownership=0.6,
    score_mean=0.03,
    score_spread=0.02,
    moves_left=0.04,
)

WEIGHED = ("value", "search", "final")


def outputs(seed: int = 0) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(seed)
    return {
        "policy": numbers.normal(size=(B, A)),
        "value": numbers.normal(size=(B, 3)),
        "ownership": numbers.normal(size=(B, H, W)),
        "score": np.stack([numbers.normal(0, 12, B), numbers.uniform(1, 30, B)], -1),
        "opponent_policy": numbers.normal(size=(B, A)),
        "moves_left": numbers.uniform(0, 60, B),
    }


def batch(seed: int = 1) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(seed)
    planes = numbers.random((B, H, W, 2)) < 0.5
    planes[:3, :, :, 0] = True
    planes[3:, :, :, 0] = [[True, True, False], [True, True, False], [False] * 3]
    return {
        "planes": planes,
        "policy": numbers.dirichlet(np.ones(A), B).astype(np.float16),
        "policy_weight": np.array([1, 0, 1, 0.5, 1], np.float32),
        "outcome": np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0, 0.5], [1, 0, 0]], np.float32),
        "search_value": np.array([0.5, -1, 1, 0, -0.2], np.float32),
        "weight": np.array([1, 2, 0.5, 1, 0], np.float32),
        "moves_left": np.array([0, 100, 30, 5, 7], np.int16),
        "opponent_policy": numbers.dirichlet(np.ones(A), B).astype(np.float16),
        "opponent_weight": np.array([0, 1, 1, 1, 1], np.float32),
        "ownership": numbers.integers(-1, 2, (B, H, W)).astype(np.int8),
        "score": numbers.normal(0, 20, B).astype(np.float32),
    }


def softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits - logits.max())
    return shares / shares.sum()


def slow_huber(x: float, knee: float) -> float:
    return x * x / 2 if abs(x) <= knee else knee * (abs(x) - knee / 2)


def slow(said: dict[str, np.ndarray], rows: dict[str, np.ndarray], frozen: dict[str, np.ndarray]) -> dict[str, float]:
    """Each loss, row by row and point by point. `frozen` stands for outputs that no gradient goes through."""
    sums: dict[str, float] = {}
    weights: dict[str, float] = {}

    def add(name: str, weight: float, loss: float) -> None:
        sums[name] = sums.get(name, 0) + weight * loss
        weights[name] = weights.get(name, 0) + weight

    for b in range(B):
        weight = float(rows["weight"][b])
        for name, key in (("policy", "policy_weight"), ("opponent_policy", "opponent_weight")):
            shares, target = softmax(said[name][b]), rows[name][b].astype(np.float64)
            add(name, weight * float(rows[key][b]), -sum(t * math.log(s) for s, t in zip(shares, target, strict=True)))
        q = float(rows["search_value"][b])
        draw = min(softmax(frozen["value"][b])[1], 1 - abs(q))
        searched = [(1 - draw + q) / 2, draw, (1 - draw - q) / 2]
        share = SETTINGS.search_share
        played, seen, final = (
            float(rows[f"{name}_weight"][b]) if f"{name}_weight" in rows else 1.0 for name in WEIGHED
        )
        for target, factor in ((rows["outcome"][b], (1 - share) * played), (searched, share * seen)):
            entropy = -sum(float(t) * math.log(s) for s, t in zip(softmax(said["value"][b]), target, strict=True))
            add("value", weight * factor, entropy)
        points = []
        for y in range(H):
            for x in range(W):
                if rows["planes"][b, y, x, 0]:
                    mine = (1 + math.tanh(said["ownership"][b, y, x])) / 2
                    t = (1 + float(rows["ownership"][b, y, x])) / 2
                    points.append(-t * math.log(mine) - (1 - t) * math.log(1 - mine))
        add("ownership", weight * final, sum(points) / len(points))
        missed = said["score"][b, 0] - float(rows["score"][b])
        add("score_mean", weight * final, slow_huber(missed, MEAN_KNEE))
        error = abs(frozen["score"][b, 0] - float(rows["score"][b])) * math.sqrt(math.pi / 2)
        add("score_spread", weight * final, slow_huber(said["score"][b, 1] - error, SPREAD_KNEE))
        known = rows["moves_left"][b] != UNKNOWN
        add("moves_left", weight * known, slow_huber(said["moves_left"][b] - float(rows["moves_left"][b]), MOVES_KNEE))
    return {name: sums[name] / weights[name] for name in sums}


def total(said: dict[str, np.ndarray], rows: dict[str, np.ndarray], frozen: dict[str, np.ndarray]) -> float:
    return sum(getattr(SETTINGS, name) * loss for name, loss in slow(said, rows, frozen).items())


def found(said: dict[str, np.ndarray], rows: dict[str, np.ndarray]) -> dict[str, float]:
    _, figures = losses(_as_outputs(said), {k: jnp.asarray(v) for k, v in rows.items()}, SETTINGS)
    return {name: float(figure) for name, figure in figures.items()}


def _as_outputs(said: dict[str, Any]) -> Outputs:
    return Outputs(**{name: jnp.asarray(x, jnp.float32) for name, x in said.items()})


@pytest.mark.parametrize("weighed", [False, True], ids=["plain", "with weights of targets"])
def test_every_loss_against_the_slow_version(weighed: bool) -> None:
    said, rows = outputs(), batch()
    if weighed:  # as rows of KataGo have them, which know nothing of the moves left
        numbers = np.random.default_rng(4)
        rows |= {f"{name}_weight": numbers.random(B).astype(np.float32) for name in WEIGHED}
        rows["value_weight"][0] = rows["search_weight"][0] = rows["final_weight"][1] = 0
        rows["moves_left"][2] = UNKNOWN
    expected, figures = slow(said, rows, said), found(said, rows)
    for name, loss in expected.items():
        assert figures[f"{name}_loss"] == pytest.approx(loss, rel=1e-5), name
    assert figures["loss"] == pytest.approx(total(said, rows, said), rel=1e-5)


@pytest.mark.slow
def test_gradients_against_differences_of_the_slow_version() -> None:
    said, rows = outputs(), batch()
    given = {k: jnp.asarray(v) for k, v in rows.items()}
    gradient = jax.grad(lambda said: losses(said, given, SETTINGS)[0])(_as_outputs(said))._asdict()
    for name, values in said.items():
        for index in np.ndindex(*values.shape):
            step = 1e-5
            up, down = ({**said, name: values.copy()} for _ in range(2))
            up[name][index] += step
            down[name][index] -= step
            expected = (total(up, rows, said) - total(down, rows, said)) / (2 * step)
            assert float(gradient[name][index]) == pytest.approx(expected, rel=1e-3, abs=2e-6), (name, index)


def test_figures_by_hand() -> None:
    said, rows = outputs(), batch()
    figures = found(said, rows)
    weight = rows["weight"] * rows["policy_weight"]
    shares = np.array([softmax(x) for x in said["policy"]])
    target = rows["policy"].astype(np.float64)
    for name, each in {
        "policy_entropy": -(shares * np.log(shares)).sum(1),
        "policy_target_entropy": -(target * np.log(np.maximum(target, 1e-9))).sum(1),
        "policy_accuracy": (shares.argmax(1) == target.argmax(1)).astype(float),
    }.items():
        assert figures[name] == pytest.approx((each * weight).sum() / weight.sum(), rel=1e-4), name
    values = np.array([softmax(x) for x in said["value"]])
    missed = (values[:, 0] - values[:, 2]) - (rows["outcome"][:, 0] - rows["outcome"][:, 2])
    assert figures["value_mse"] == pytest.approx((missed**2 * rows["weight"]).sum() / rows["weight"].sum(), rel=1e-5)


def test_points_off_the_board_and_rows_without_weight_do_not_count() -> None:
    said, rows = outputs(), batch()
    before = found(said, rows)
    other = {name: x.copy() for name, x in said.items()}
    other["ownership"][~rows["planes"][..., 0]] = 40.0
    changed = {name: x.copy() for name, x in rows.items()}
    changed["ownership"][~rows["planes"][..., 0]] = 1
    for name in ("policy", "opponent_policy", "value", "moves_left"):
        other[name][4] = 7.0  # the last row has no weight
    changed["score"][4] = np.nan
    changed["policy"][1] = 0  # no policy weight there
    assert found(other, changed) == pytest.approx(before, rel=1e-6)


@pytest.mark.slow
def test_actions_off_the_board_are_harmless() -> None:
    said, rows = outputs(), batch()
    for name in ("policy", "opponent_policy"):
        said[name][:, 7:] = OFF_BOARD
        rows[name] = np.concatenate([rows[name][:, :7], np.zeros((B, 3), np.float16)], 1)
    given = {k: jnp.asarray(v) for k, v in rows.items()}
    loss, gradient = jax.value_and_grad(lambda said: losses(said, given, SETTINGS)[0])(_as_outputs(said))
    assert np.isfinite(float(loss))
    assert np.isfinite(np.asarray(gradient.policy)).all()
    assert not np.asarray(gradient.policy)[:, 7:].any()


def test_nothing_to_learn_from_gives_zero() -> None:
    said, rows = outputs(), batch()
    rows["weight"] = np.zeros(B, np.float32)
    given = {k: jnp.asarray(v) for k, v in rows.items()}
    loss, gradient = jax.value_and_grad(lambda said: losses(said, given, SETTINGS)[0])(_as_outputs(said))
    assert float(loss) == 0
    assert all(not np.asarray(leaf).any() for leaf in jax.tree.leaves(gradient))


def test_heads_that_are_not_there_are_not_asked_for() -> None:
    said = {name: x for name, x in outputs().items() if name in ("policy", "value")}
    rows = {k: v for k, v in batch().items() if k not in ("ownership", "score", "opponent_policy", "opponent_weight")}
    figures = found(said, rows)
    assert {name for name in figures if name.endswith("_loss")} == {"policy_loss", "value_loss"}


def test_the_search_says_nothing_about_draws() -> None:
    outcome = jnp.asarray([[0.0, 1, 0]])
    for q in (-1.0, -0.4, 0.0, 1.0):
        target = np.asarray(value_target(outcome, jnp.asarray([q]), jnp.asarray([[0.0, 2, 0]]), 1.0))[0]
        assert target.sum() == pytest.approx(1)
        assert target[0] - target[2] == pytest.approx(q, abs=1e-6)
        assert (target > -1e-6).all()
        assert target[1] == pytest.approx(min(math.exp(2) / (math.exp(2) + 2), 1 - abs(q)), abs=1e-6)
    np.testing.assert_array_equal(value_target(outcome, jnp.asarray([0.5]), jnp.zeros((1, 3)), 0.0), outcome)


def test_a_draw_can_be_half_a_win_and_half_a_loss() -> None:
    rows = jax.tree.map(jnp.asarray, {**batch(), "outcome": np.tile(np.float32([0, 1, 0]), (B, 1))})
    halves = {**rows, "outcome": jnp.tile(jnp.float32([0.5, 0, 0.5]), (B, 1))}
    said = _as_outputs(outputs())
    _, figures = losses(said, rows, LossSettings(), halves_draws=True)
    _, expected = losses(said, halves, LossSettings())
    _, otherwise = losses(said, rows, LossSettings())
    assert figures["value_loss"] == pytest.approx(float(expected["value_loss"]))
    assert figures["value_loss"] != pytest.approx(float(otherwise["value_loss"]), abs=0.01)


def test_the_spread_is_learned_to_be_the_standard_deviation() -> None:
    misses = jnp.asarray(np.random.default_rng(0).normal(0, 4, 20000), jnp.float32)
    error = jnp.abs(misses) * math.sqrt(math.pi / 2)
    candidates = np.linspace(2, 6, 81)
    each = [float(mean(optax.huber_loss(c - error, delta=SPREAD_KNEE), jnp.ones(len(error)))) for c in candidates]
    assert candidates[int(np.argmin(each))] == pytest.approx(4, abs=0.25)


@pytest.mark.slow
def test_unknown_targets_teach_nothing() -> None:
    """Neither their loss nor its gradient depends on rows that do not know a target."""
    rows, few = batch(), {name: values[1:] for name, values in batch().items()}
    rows["ownership"][0], rows["score"][0] = UNKNOWN, np.nan

    def found(rows: dict[str, np.ndarray], score: jax.Array, ownership: jax.Array) -> Any:
        taken = {name: jnp.asarray(values[: len(score)], jnp.float32) for name, values in outputs().items()}
        taken |= {"score": score, "ownership": ownership}
        figures = losses(Outputs(**taken), {name: jnp.asarray(each) for name, each in rows.items()}, SETTINGS)[1]
        return figures["ownership_loss"] + figures["score_mean_loss"] + figures["score_spread_loss"]

    given = [jnp.asarray(outputs()[name], jnp.float32) for name in ("score", "ownership")]
    value, gradient = jax.value_and_grad(found, (1, 2))(rows, *given)
    expected, wanted = jax.value_and_grad(found, (1, 2))(few, *(each[1:] for each in given))
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    for one, other in zip(gradient, wanted, strict=True):
        np.testing.assert_allclose(one[1:], other, rtol=1e-5)
        assert not one[0].any()


class TestTargetsOfAGame:
    """Losses that a game declares by name or as a function, against plain NumPy."""

    NUMBERS = np.random.default_rng(5)
    OUTPUT, TARGET = NUMBERS.normal(size=(B, H, W)), NUMBERS.uniform(0, 1, (B, H, W))

    def loss(self, target: Target, output: np.ndarray, wanted: np.ndarray, **settings: Any) -> tuple[float, dict]:
        given = {"policy": jnp.zeros((B, A)), "value": jnp.zeros((B, 3)), "extra": {target.name: jnp.asarray(output)}}
        rows = {name: jnp.asarray(x) for name, x in batch().items()} | {target.name: jnp.asarray(wanted, jnp.float32)}
        chosen = LossSettings(policy=0, value=0, **settings)
        total, figures = losses(Outputs(**given), rows, chosen, (target,))
        return float(total), {name: float(figure) for name, figure in figures.items()}

    def by_point(self, each: np.ndarray) -> float:
        """The mean over the points on each board, then over the rows by weight."""
        on, weight = batch()["planes"][..., 0], batch()["weight"]
        return float((np.where(on, each, 0).sum((1, 2)) / on.sum((1, 2)) * weight).sum() / weight.sum())

    @pytest.mark.parametrize(
        ("name", "each"),
        [
            ("squared", lambda x, t: (x - t) ** 2 / 2),
            ("huber", lambda x, t: np.where(abs(x - t) <= 1, (x - t) ** 2 / 2, abs(x - t) - 0.5)),
            ("binary", lambda x, t: -t * np.log(1 / (1 + np.exp(-x))) - (1 - t) * np.log(1 / (1 + np.exp(x)))),
            ("ownership", lambda x, t: -(1 + t) / 2 * np.log((1 + np.tanh(x)) / 2)
             - (1 - t) / 2 * np.log((1 - np.tanh(x)) / 2)),
        ],
    )  # fmt: skip
    def test_of_points(self, name: str, each: Any) -> None:
        target = Target("mine", "point", loss=name, weight=2.0)
        total, figures = self.loss(target, self.OUTPUT, self.TARGET)
        expected = self.by_point(each(self.OUTPUT, self.TARGET))
        assert figures["mine_loss"] == pytest.approx(expected, rel=1e-5)
        assert total == pytest.approx(2 * expected, rel=1e-5)
        total, _ = self.loss(target, self.OUTPUT, self.TARGET, extra=("mine=0.5",))
        assert total == pytest.approx(expected / 2, rel=1e-5)

    def test_a_distribution_over_the_board(self) -> None:
        on, weight = batch()["planes"][..., 0], batch()["weight"]
        wanted = np.where(on, self.TARGET, 0)
        wanted /= wanted.sum((1, 2), keepdims=True)
        logits = np.where(on, np.exp(self.OUTPUT), 0)
        each = -(wanted * np.log(np.where(on, logits / logits.sum((1, 2), keepdims=True), 1))).sum((1, 2))
        _, figures = self.loss(Target("where", "point", loss="cross_entropy"), self.OUTPUT, wanted)
        assert figures["where_loss"] == pytest.approx(float((each * weight).sum() / weight.sum()), rel=1e-5)

    def test_a_mean_and_its_spread(self) -> None:
        score = outputs()["score"]
        _, figures = self.loss(Target("lead", "number", loss="score"), score, batch()["score"])
        rows = {name: jnp.asarray(x) for name, x in batch().items()}
        _, go = losses(Outputs(jnp.zeros((B, A)), jnp.zeros((B, 3)), score=jnp.asarray(score)), rows, SETTINGS)
        for part in ("mean_loss", "spread_loss", "error"):
            assert figures[f"lead_{part}"] == pytest.approx(float(go[f"score_{part}"]))

    def test_a_function(self) -> None:
        weight = batch()["weight"]
        target = Target("mine", "point", loss=lambda output, wanted: jnp.abs(output - wanted).max((1, 2)))
        expected = (abs(self.OUTPUT - self.TARGET).max((1, 2)) * weight).sum() / weight.sum()
        assert self.loss(target, self.OUTPUT, self.TARGET)[1]["mine_loss"] == pytest.approx(float(expected), rel=1e-5)
        bad = Target("mine", "point", loss=lambda output, wanted: output[:, 0])
        with pytest.raises(
            OptionError, match=r"test_losses.py, line \d+: the loss of mine must give one number per row, \[5\]"
        ):
            self.loss(bad, self.OUTPUT, self.TARGET)
