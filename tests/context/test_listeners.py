"""Who gets which batches, and what these hold: sizes, fields and features of states."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.context import GameContext
from tengen.errors import OptionError, TengenError
from tests.helpers.contexts import OPENINGS, SEARCH, TIC_TAC_TOE, idle
from tests.helpers.patience import LONG


def seen(states: Any) -> dict[str, Any]:
    """What the player to move sees: the same as the planes of the batch, by another way."""
    return {"seen": jax.vmap(TIC_TAC_TOE.observe)(states).planes, "mover": jax.vmap(TIC_TAC_TOE.to_play)(states)}


def test_one_actor_serves_both_colours() -> None:
    colours: set[int] = set()
    context = GameContext(TIC_TAC_TOE, 4, 2, **OPENINGS)

    @context.on("actor")
    def both(batch: Any) -> Any:
        colours.update(batch["colour"][: batch.count].tolist())
        return idle(batch)

    with pytest.raises(TengenError, match="on: actor_white: actor has a function already; actor is for both colours"):
        context.on("actor_white", idle)
    with context:
        labels = {context.run(LONG) for _ in range(20)}
    assert labels == {"actor"}
    assert colours == {0, 1}
    context = GameContext(TIC_TAC_TOE, 4, 2)
    context.on("actor_white", idle)
    with pytest.raises(TengenError, match="on: actor: actor_white has a function already"):
        context.on("actor", idle)


def test_each_label_has_its_size_and_fields() -> None:
    found: dict[str, Any] = {}

    def noted(batch: Any) -> Any:
        found[batch.label] = {name: np.shape(values) for name, values in batch.items()}
        return None if batch.label == "train" else idle(batch)

    context = GameContext(TIC_TAC_TOE, 4, 2, total_games=6, **OPENINGS)
    context.on("actor_black", noted, batch_size=3, fields=["planes", "ply"])
    context.on("actor_white", noted)  # the same function, but other batches
    context.on("train", noted, batch_size=5, fields=("outcome", "policy", "opponent_policy", "version"))
    with context:
        while context.run(LONG) is not None:
            pass
    needed = {"legal": (3, 9), "version": (3,), "mask": (3,), "count": ()}
    assert found["actor_black"] == {"planes": (3, *TIC_TAC_TOE.planes_shape), "ply": (3,), **needed}
    assert found["actor_white"]["planes"] == (2, *TIC_TAC_TOE.planes_shape)
    assert set(found["actor_white"]) >= {"scalars", "player", "colour", "game"}
    assert found["train"] == {"outcome": (5, 3), "policy": (5, 9), "opponent_policy": (5, 9), "version": (5,)}


@pytest.mark.parametrize(
    ("search", "arrays"), [(None, "numpy"), (None, "jax"), pytest.param(SEARCH, "numpy", marks=pytest.mark.slow)]
)
def test_features_are_those_of_the_positions(search: Any, arrays: str) -> None:
    checked = {"actor": 0, "train": 0}

    def check(batch: Any) -> Any:
        count = batch.count if batch.label == "actor" else len(batch["planes"])
        for name in ("seen", "planes"):
            assert isinstance(batch[name], jax.Array if arrays == "jax" else np.ndarray)
        assert np.array_equal(batch["seen"][:count], batch["planes"][:count])
        assert (batch["mover"][:count] == batch["player" if batch.label == "actor" else "to_play"][:count]).all()
        checked[batch.label] += count
        return None if batch.label == "train" else idle(batch)

    context = GameContext(TIC_TAC_TOE, 4, 2, search=search, total_games=6, arrays=arrays, replay_rows=9, **OPENINGS)
    context.on("actor", check, features=seen)
    context.on("train", check, features=seen)
    with context:
        while context.run(LONG) is not None:
            pass
    assert min(checked.values()) > 10


def broken(states: Any) -> Any:
    raise KeyError("stones")


@pytest.mark.parametrize(
    ("label", "options", "said"),
    [
        ("actor", {"batch_size": 0}, "on: actor: batch_size: expected a whole number .*, got 0"),
        ("actor", {"fields": "planes"}, 'on: actor: fields: expected a list of names, got "planes"'),
        ("actor", {"fields": ["plans"]}, "on: actor: fields: plans: unknown field, did you mean planes"),
        ("train", {"fields": ["ownership"]}, "tic_tac_toe has no ownership"),
        ("train", {"fields": []}, "on: train: fields: expected at least one"),
        ("train", {"fields": ["opponent_weight"]}, "belongs to opponent_policy; add that"),
        ("game_end", {"batch_size": 3}, "on: game_end: batch_size, fields and features are for batches of positions"),
        ("train", {"features": broken}, r"on: train: features: KeyError: 'stones' \(.*test_listeners.py, line \d+, in"),
        ("actor", {"features": lambda s: {"a": np.asarray(s.stones)}}, "compiled, so write it with jax.numpy: .*line"),
        ("actor", {"features": lambda s: {"a": jnp.zeros(7)}}, r"test_listeners.py, line \d+: a: expected one entry"),
        ("actor", {"features": lambda s: 3}, r"test_listeners.py, line \d+: expected a dict of arrays by name"),
        ("actor", {"features": lambda s: {"legal": s.stones}}, "features: legal: the batch has a field of that name"),
    ],
)
def test_what_cannot_be_listened_to(label: str, options: dict[str, Any], said: str) -> None:
    context = GameContext(TIC_TAC_TOE, 4, 2)
    with pytest.raises(OptionError, match=said):
        context.on(label, idle, **options)
    context.on(label, idle)  # nothing of it is left
