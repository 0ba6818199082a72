"""Checks of what callbacks answer: each error names the field and what was expected."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tengen import importing
from tengen.context import batches
from tengen.context.batches import Batch, untouched
from tengen.context.listeners import COLOURS
from tengen.errors import TengenError
from tengen.nets.models import to_jax, to_numpy
from tengen.schema import unknown

_SLACK = 1e-3  # by which half precision may put a value outside of [-1, 1]


class ReplyError(TengenError):
    """A callback's answer cannot be used."""


@contextlib.contextmanager
def given_by(function: Any) -> Iterator[None]:
    """Around the use of a callback's answer: errors name the file and line of the callback as well."""
    try:
        yield
    except ReplyError as error:
        raise ReplyError(f"{error} ({importing.where(function)})") from error


def accept(batch: Batch, reply: Any) -> None:
    """Put a callback's answer into `batch.reply`, unless it did so itself, and check it. Raises ReplyError."""
    if reply is not None or untouched(batch):
        take(batch, reply)
    check(batch)


def take(batch: Batch, reply: Any) -> None:
    """Copy the real rows of a callback's answer into `batch.reply`. Raises ReplyError."""
    if not isinstance(reply, Mapping):
        what = "nothing" if reply is None else f"a {type(reply).__name__}"
        raise ReplyError(f"{batch.label}: expected a reply with {_names(batch)}, as a dict, got {what}")
    for name in batch.reply:
        if name not in reply:
            raise ReplyError(f"{batch.label}: {name} is missing in the reply, which must have {_names(batch)}")
    _check_names(batch.label, reply, batch.reply)
    for name, room in batch.reply.items():
        given = (_device_array if batch.on_device else _array)(batch.label, name, reply[name])
        full, real = room.shape, (batch.count, *room.shape[1:])
        if given.shape not in (full, real):
            both = f"{[*full]}" if full == real else f"{[*full]}, or {[*real]} for the real rows alone"
            raise ReplyError(f"{batch.label}: {name}: expected the shape {both}, got {[*given.shape]}")
        if batch.on_device:
            # Shapes that are the same every time are compiled once.
            padded = given if given.shape == full else jnp.zeros(full).at[: batch.count].set(given)
            batch.reply[name] = jax.device_put(padded, batch.device)
        else:
            room[: batch.count] = given[: batch.count]


def check(batch: Batch) -> None:
    """Check the numbers in `batch.reply`. Raises ReplyError."""
    count, where = batch.count, f"{batch.label}: "
    if batch.on_device:
        reply = batch.reply["policy"], batch.reply["value"]
        if not bool(batches.is_wrong(*reply, batch["legal"], count)):
            return
        batch.reply.update(zip(("policy", "value"), map(np.array, reply), strict=True))  # to say what it is
    policy, value, legal = batch.reply["policy"][:count], batch.reply["value"][:count], batch["legal"][:count]
    wrong = (np.isnan(policy) | (policy == np.inf)).any(1)
    if wrong.any():
        raise ReplyError(f"{where}policy: expected logits, got NaN or infinity in {_rows(wrong)}")
    wrong = ~(legal & (policy > -np.inf)).any(1)
    if wrong.any():
        raise ReplyError(f"{where}policy: no legal move has a chance in {_rows(wrong)}: all are -infinity")
    if not np.isfinite(value).all():
        raise ReplyError(f"{where}value: expected numbers, got NaN or infinity in {_rows(~np.isfinite(value))}")
    wrong = np.abs(value) > 1 + _SLACK
    if wrong.any():
        largest = value[np.argmax(np.abs(value))]
        raise ReplyError(f"{where}value: expected numbers from -1 to 1, got {largest:.4g} ({_rows(wrong)})")
    np.clip(value, -1, 1, out=value)


def versions(batch: Batch, reply: Any, before: tuple[int, int], now: tuple[int, int]) -> np.ndarray:
    """Int64[2, n]: the versions that games begin with, from what `game_start` returned or wrote into its arrays.

    `before` are the versions when it was called, `now` the current ones. Raises ReplyError.
    """
    if reply is not None and not isinstance(reply, Mapping):
        raise ReplyError(f"game_start: expected nothing or a dict with black or white, got a {type(reply).__name__}")
    given: Mapping[str, Any] = reply or {}
    _check_names("game_start", given, COLOURS)
    found = np.zeros((2, len(batch["game"])), np.int64)
    for side, name in enumerate(COLOURS):
        written = np.asarray(batch[f"{name}_version"])
        untouched = written.shape == found[side].shape and (written == before[side]).all()
        chosen = _array("game_start", name, given.get(name, now[side] if untouched else written), whole=True)
        if chosen.shape not in ((), found[side].shape):
            raise ReplyError(f"game_start: {name}: expected one number or {[*found[side].shape]} of them, "
                             f"got {[*chosen.shape]}")  # fmt: skip
        found[side] = chosen
    return found


def new_version(reply: Any) -> dict[str, Any]:
    """What `train_control` returned, as arguments of `GameContext.set_version`. Raises ReplyError."""
    if reply is None:
        return {}
    if isinstance(reply, int | np.integer) and not isinstance(reply, bool):
        return {"black": reply, "white": reply}
    known = (*COLOURS, "version", "params")
    if not isinstance(reply, Mapping):
        what = f"{' or '.join(known)}, as in {{'params': ...}}"
        raise ReplyError(f"train_control: expected nothing, a version, or a dict with {what}, got a "
                         f"{type(reply).__name__}")  # fmt: skip
    _check_names("train_control", reply, known)
    if "version" in reply and any(colour in reply for colour in COLOURS):
        raise ReplyError("train_control: version is for both colours; give it or black and white")
    both = dict.fromkeys(COLOURS, reply["version"]) if "version" in reply else {}
    return both | {name: value for name, value in reply.items() if name != "version"}


def _check_names(label: str, reply: Iterable[Any], known: Iterable[str]) -> None:
    for name in reply:
        if name not in known:
            raise ReplyError(f"{label}: {name}: {unknown('field in the reply', str(name), known)}")


def _read(label: str, name: str, value: Any, read: Callable[[Any], Any]) -> Any:
    try:
        return read(value)
    except Exception as error:  # each framework raises its own
        raise ReplyError(f"{label}: {name}: cannot be read as an array: {error}") from error


def _array(label: str, name: str, value: Any, whole: bool = False) -> np.ndarray:
    array = _read(label, name, value, to_numpy)
    # Types that NumPy does not know itself (bfloat16) call themselves void.
    if array.dtype.kind not in ("iu" if whole else "iufV") or array.dtype.names is not None:
        wanted = "whole numbers" if whole else "numbers"
        raise ReplyError(f"{label}: {name}: expected {wanted}, got {array.dtype}")
    try:
        with np.errstate(over="ignore"):  # infinite numbers are noticed afterwards
            return array.astype(np.int64 if whole else np.float32)
    except (TypeError, ValueError) as error:
        raise ReplyError(f"{label}: {name}: expected numbers, got {array.dtype}") from error


def _device_array(label: str, name: str, value: Any) -> jax.Array:
    array = _read(label, name, value, to_jax)
    if not (jnp.issubdtype(array.dtype, jnp.floating) or jnp.issubdtype(array.dtype, jnp.integer)):
        raise ReplyError(f"{label}: {name}: expected numbers, got {array.dtype}")
    return array.astype(jnp.float32)


def _names(batch: Batch) -> str:
    return " and ".join(batch.reply)


def _rows(wrong: np.ndarray) -> str:
    places = np.flatnonzero(wrong)
    listed = ", ".join(map(str, places[:4]))
    return f"row {listed}" if len(places) == 1 else f"{len(places)} rows ({listed}{', ...' if len(places) > 4 else ''})"
