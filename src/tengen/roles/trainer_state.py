"""What checkpoints keep of a trainer of roles, and the check of the figures that its `_train` returns."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from tengen import importing
from tengen.errors import Diverged, TengenError
from tengen.importing import UserCodeError
from tengen.train import schedules
from tengen.train.base import Metrics
from tengen.train.checkpoints import Checkpoint
from tengen.train.schedules import Schedule

if TYPE_CHECKING:
    from tengen.roles.trainer import Trainer


def take(trainer: "Trainer[Any]", extras: dict[str, Any] | None) -> Checkpoint:
    """Everything that a resumed training needs; `extras` is JSON data of the caller."""
    learning = [role for role in trainer.roles.values() if role.settings is not None]
    state = {"roles": {role.name: role.state() for role in learning}, "extra": trainer.extra}
    about = {
        "trainer": trainer.config.trainer,
        "key": np.asarray(jax.random.key_data(trainer._key)).tolist(),
        "games": trainer.games,
        "samples": trainer.samples,
        "trainable": {name: role.trainable for name, role in trainer.roles.items()},
        "schedules": {
            name: kept
            for name, schedule in _own_schedules(trainer).items()
            if (kept := schedules.saved(schedule, name)) is not None
        },
        "extras": extras or {},
    }
    return Checkpoint(trainer.step, state, about)


def restore(trainer: "Trainer[Any]", checkpoint: Checkpoint) -> dict[str, Any]:
    """Go on from a checkpoint; its `extras`."""
    about = checkpoint.about
    try:
        if about["trainer"] != trainer.config.trainer:
            raise ValueError(f"by the trainer {about['trainer']}, not {trainer.config.trainer}")
        key = jax.random.wrap_key_data(jnp.asarray(about["key"], jnp.uint32))
        trainable = {name: bool(about["trainable"][name]) for name in trainer.roles}
        games, samples = int(about["games"]), int(about["samples"])
        extras, kept = dict(about["extras"]), dict(about.get("schedules", {}))
    except (KeyError, TypeError, ValueError) as error:
        what = f"the checkpoint of step {checkpoint.step} belongs to another kind of training"
        raise TengenError(f"{what}: {error}") from None
    _restore_schedules(trainer, kept)
    state = jax.tree.map(jnp.asarray, checkpoint.state)
    for name, role in trainer.roles.items():
        role.trainable = trainable[name]
        if role.settings is not None:
            role.restore(state["roles"][name])
    trainer.games, trainer.samples = games, samples
    trainer.extra, trainer._key, trainer._step = state["extra"], key, checkpoint.step
    return extras


def _own_schedules(trainer: "Trainer[Any]") -> dict[str, Any]:
    """The schedules that the program has set, by the names of their attributes."""
    named = {name: value for name, value in vars(trainer).items() if "schedule" in name}
    found = {name: value for name, value in named.items() if isinstance(value, Schedule) or schedules.has_state(value)}
    for role in trainer.roles.values():
        found |= {f"{role.name}_{part}": getattr(role, part) for part in sorted(role.own_schedules)}
    return found


def _restore_schedules(trainer: "Trainer[Any]", kept: Mapping[str, Mapping[str, Any]]) -> None:
    own = _own_schedules(trainer)
    for name, state in kept.items():
        found = schedules.restored(state, own.get(name), name, name in own)
        if name not in own:
            setattr(trainer, name, found)


def numbers(trainer: "Trainer[Any]", figures: Any) -> Metrics:
    """The figures that a subclass's `_train` returned, as numbers by name.

    UserCodeError if they are something else, and Diverged if a loss is not finite.
    """
    where = importing.defined_at(type(trainer)._train)
    if not isinstance(figures, Mapping | None):
        raise UserCodeError(f"_train: expected figures by name, or None, got {type(figures).__name__} ({where})")
    found: Metrics = {}
    for name, figure in jax.device_get(dict(figures or {})).items():
        try:
            found[str(name)] = float(figure)
        except (TypeError, ValueError):
            raise UserCodeError(f"_train: {name}: expected a number, got {type(figure).__name__} ({where})") from None
        if str(name).endswith("loss") and not math.isfinite(found[str(name)]):
            raise Diverged.at(trainer.step, f"{name} is {found[str(name)]}, not a finite number ({where})")
    return found
