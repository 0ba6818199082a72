"""What a callback may answer, and what is said about everything else."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from tengen.context import ReplyError, batches, replies
from tengen.context.batches import Batch
from tengen.context.listeners import Listener
from tests.helpers.contexts import TIC_TAC_TOE, idle

ACTIONS = TIC_TAC_TOE.num_actions


@pytest.fixture
def batch() -> Batch:
    """Four rows, three of them real."""
    made = batches.for_actor("actor_black", TIC_TAC_TOE, Listener(idle, 4))
    made["legal"][:, 2:] = True
    batches.pad(made, 3)
    return made


def answered(batch: Batch, reply: Any) -> Batch:
    replies.take(batch, reply)
    replies.check(batch)
    return batch


def good(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"policy": rng.normal(size=(rows, ACTIONS)), "value": np.array([0.5, -1.0, 1.0, 0.0])[:rows]}


KINDS: dict[str, Any] = {
    "half": lambda x: x.astype(np.float16),
    "single": lambda x: x.astype(np.float32),
    "double": lambda x: x,
    "jax": jnp.asarray,
    "bfloat16": lambda x: jnp.asarray(x, jnp.bfloat16),
    "lists": lambda x: x.tolist(),
}


@pytest.mark.parametrize("rows", [3, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_all_rows_or_the_real_ones_in_any_type(batch: Batch, rows: int, kind: str) -> None:
    reply = {name: KINDS[kind](values) for name, values in good(rows).items()}
    answered(batch, reply)
    np.testing.assert_allclose(batch.reply["policy"][:3], good(3)["policy"], atol=0.02)
    assert batch.reply["value"][:3].tolist() == [0.5, -1.0, 1.0]
    assert np.isnan(batch.reply["value"][3])  # not real, and not looked at


def test_illegal_moves_may_be_impossible_and_legal_ones_hopeless(batch: Batch) -> None:
    reply = good(3)
    reply["policy"][:, :5] = -np.inf
    answered(batch, reply)


def test_values_that_rounding_put_outside_are_put_inside(batch: Batch) -> None:
    reply = good(3)
    reply["value"][:] = [1.0005, -1.0005, 0]
    assert answered(batch, reply).reply["value"][:3].tolist() == [1, -1, 0]


class Stubborn:
    """As a tensor on another device."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


def changed(**fields: Any) -> dict[str, Any]:
    return {name: values for name, values in (good(3) | fields).items() if values is not ...}


def with_policy(place: Any, value: float) -> dict[str, Any]:
    policy = good(3)["policy"]
    policy[place] = value
    return changed(policy=policy)


WRONG: dict[str, tuple[Any, str]] = {
    "nothing": (None, "expected a reply with policy and value, as a dict, got nothing"),
    "tuple": ((1, 2), "expected a reply with policy and value, as a dict, got a tuple"),
    "no value": (changed(value=...), "value is missing in the reply, which must have policy and value"),
    "no policy": (changed(policy=...), "policy is missing in the reply"),
    "extra": (changed(Value=1), "Value: unknown field in the reply, did you mean value"),
    "strange": (changed(aux=1), "aux: unknown field in the reply, expected one of policy, value"),
    "rows": (
        changed(policy=np.zeros((2, ACTIONS))),
        r"policy: expected the shape \[4, 9\], or \[3, 9\] for the real rows alone, got \[2, 9\]",
    ),
    "actions": (changed(policy=np.zeros((3, 10))), r"policy: .* got \[3, 10\]"),
    "column": (changed(value=np.zeros((3, 1))), r"value: expected the shape \[4\], or \[3\] .*, got \[3, 1\]"),
    "number": (changed(value=0.0), r"value: .* got \[\]"),
    "ragged": (changed(value=[[1], [1, 2]]), "value: cannot be read as an array"),
    "words": (changed(value=["a", "b", "c"]), "value: expected numbers, got <U1"),
    "complex": (changed(value=np.zeros(3, complex)), "value: expected numbers, got complex128"),
    "objects": (changed(value=[None] * 3), "value: expected numbers, got object"),
    "records": (changed(value=np.zeros(3, [("x", "f4")])), "value: expected numbers"),
    "elsewhere": (changed(policy=Stubborn()), "policy: cannot be read as an array: can't convert cuda:0"),
    "nan": (with_policy((1, 0), np.nan), "policy: expected logits, got NaN or infinity in row 1"),
    "infinite": (with_policy(slice(None), np.inf), r"policy: .* in 3 rows \(0, 1, 2\)"),
    "huge": (with_policy((0, 0), 1e300), "policy: expected logits, got NaN or infinity in row 0"),
    "hopeless": (
        with_policy((2, slice(2, None)), -np.inf),
        "policy: no legal move has a chance in row 2: all are -infinity",
    ),
    "nan value": (changed(value=[0, np.nan, 0]), "value: expected numbers, got NaN or infinity in row 1"),
    "large": (changed(value=[0, 0, -3.5]), r"value: expected numbers from -1 to 1, got -3.5 \(row 2\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(batch: Batch, name: str) -> None:
    reply, said = WRONG[name]
    with pytest.raises(ReplyError, match=f"^actor_black: {said}"):
        answered(batch, reply)


def test_a_batch_that_nobody_answered_is_noticed(batch: Batch) -> None:
    assert batches.untouched(batch)
    batch.reply["policy"][:] = 0
    assert not batches.untouched(batch)
    with pytest.raises(ReplyError, match=r"value: expected numbers, got NaN or infinity in 3 rows"):
        replies.check(batch)


def test_padding_repeats_the_last_real_row(batch: Batch) -> None:
    assert answered(batch, idle(batch)) is batch
    assert batch["game"].tolist() == [0, 0, 0, -1]
    assert batch["mask"].tolist() == [True, True, True, False]
    assert int(batch["count"]) == batch.count == 3
    assert len(batch["ply"][: batch["count"]]) == 3  # it can be used as it is
