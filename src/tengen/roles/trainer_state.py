"""The state of a trainer of roles in checkpoints, and the check of the figures that its `_train` returns."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from tengen import importing
from tengen.config.trainers import ROLES
from tengen.errors import Diverged, TengenError
from tengen.importing import UserCodeError
from tengen.roles.role import SCHEDULERS
from tengen.train import schedules
from tengen.train.base import Metrics
from tengen.train.checkpoints import Checkpoint
from tengen.train.schedules import Schedule

if TYPE_CHECKING:
    from tengen.roles.trainer import Trainer


def take(trainer: "Trainer[Any]", extras: dict[str, Any] | None) -> Checkpoint:
    """Everything that is needed to resume training; `extras` is JSON data of the caller."""
    check_extra(trainer)
    kept = _kept_names(trainer)
    state = {
        "roles": {kept[name]: role.state() for name, role in trainer.roles.items() if role.settings is not None},
        "extra": _renamed(trainer.extra, kept),
    }
    about = {
        "trainer": trainer.config.trainer,
        "key": np.asarray(jax.random.key_data(trainer._key)).tolist(),
        "games": trainer.games,
        "samples": trainer.samples,
        "trainable": {kept[name]: role.trainable for name, role in trainer.roles.items()},
        "schedules": {
            _attribute(name, kept): found
            for name, schedule in _own_schedules(trainer).items()
            if (found := schedules.saved(schedule, name)) is not None
        },
        "extras": extras or {},
    }
    return Checkpoint(trainer.step, state, about)


def check_extra(trainer: "Trainer[Any]") -> None:
    """UserCodeError if `extra` holds what a checkpoint cannot hold; found at once, not at the first checkpoint."""
    where = importing.where(type(trainer)._train)
    if not isinstance(trainer.extra, Mapping):
        raise UserCodeError(f"extra: expected arrays by name, got {type(trainer.extra).__name__} ({where})")
    for path, leaf in jax.tree.flatten_with_path(trainer.extra)[0]:
        kind = getattr(leaf, "dtype", None) or np.asarray(leaf).dtype
        if not (jnp.issubdtype(kind, np.number) or np.issubdtype(kind, np.bool_)):
            name = f"extra{jax.tree_util.keystr(path)}"
            raise UserCodeError(f"{name}: expected arrays of numbers, got {type(leaf).__name__} {kind} ({where})")


def with_extra(template: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The template for arrays of a checkpoint by name, with what only the checkpoint has of `extra`.

    A trainer may fill `extra` while it learns, so that a new one does not know what belongs there.
    """
    if not isinstance(template["extra"], Mapping):
        return template
    more: dict[str, Any] = {}
    for name, array in arrays.items():
        part, *inner, last = name.split("/")
        if part == "extra" and [*inner, last][0] not in template["extra"]:
            place = more
            for key in inner:
                place = place.setdefault(key, {})
            place[last] = array
    return {**template, "extra": {**template["extra"], **more}}


def restore(trainer: "Trainer[Any]", checkpoint: Checkpoint) -> dict[str, Any]:
    """Resume from a checkpoint; returns its `extras`."""
    about = checkpoint.about
    try:
        if about["trainer"] != trainer.config.trainer:
            raise ValueError(f"by the trainer {about['trainer']}, not {trainer.config.trainer}")
        key = jax.random.wrap_key_data(jnp.asarray(about["key"], jnp.uint32))
        trainable = {name: bool(about["trainable"][old]) for name, old in _kept_names(trainer).items()}
        games, samples = int(about["games"]), int(about["samples"])
        extras, own = dict(about["extras"]), dict(about.get("schedules", {}))
    except (KeyError, TypeError, ValueError) as error:
        what = f"the checkpoint of step {checkpoint.step} belongs to another kind of training"
        raise TengenError(f"{what}: {error}") from None
    _restore_schedules(trainer, own)
    state, kept = jax.tree.map(jnp.asarray, checkpoint.state), _kept_names(trainer)
    for name, role in trainer.roles.items():
        role.trainable = trainable[name]
        if role.settings is not None:
            role.restore(state["roles"][kept[name]])
    trainer.games, trainer.samples = games, samples
    trainer.extra = _renamed(state["extra"], {old: name for name, old in kept.items()})
    trainer._key, trainer._step = key, checkpoint.step
    return extras


def _kept_names(trainer: "Trainer[Any]") -> dict[str, str]:
    """Names of roles in checkpoints: host and agent in every game, so that checkpoints of all versions can be read."""
    return dict(zip(trainer.roles, ROLES, strict=False))


def _renamed(extra: Any, names: Mapping[str, str]) -> Any:
    return {names.get(name, name): value for name, value in extra.items()} if isinstance(extra, Mapping) else extra


def _attribute(name: str, names: Mapping[str, str]) -> str:
    found = [part for part in SCHEDULERS if name.endswith(f"_{part}")]
    role = name.removesuffix(f"_{found[0]}") if found else name
    return f"{names[role]}_{found[0]}" if found and role in names else name


def _own_schedules(trainer: "Trainer[Any]") -> dict[str, Any]:
    """The schedules that the program has set, by the names of their attributes."""
    named = {name: value for name, value in vars(trainer).items() if "schedule" in name}
    found = {name: value for name, value in named.items() if isinstance(value, Schedule) or schedules.has_state(value)}
    for role in trainer.roles.values():
        found |= {f"{role.name}_{part}": getattr(role, part) for part in sorted(role.own_schedules)}
    return found


def _restore_schedules(trainer: "Trainer[Any]", kept: Mapping[str, Mapping[str, Any]]) -> None:
    own, names = _own_schedules(trainer), {old: name for name, old in _kept_names(trainer).items()}
    for name, state in {_attribute(name, names): state for name, state in kept.items()}.items():
        found = schedules.restored(state, own.get(name), name, name in own)
        if name not in own:
            setattr(trainer, name, found)


def numbers(trainer: "Trainer[Any]", figures: Any, method: str = "_train") -> Metrics:
    """The figures that a method of a subclass returned, as numbers by name.

    UserCodeError if they are something else, and Diverged if a loss is not finite.
    """
    where = importing.where(getattr(type(trainer), method))
    if not isinstance(figures, Mapping | None):
        raise UserCodeError(f"{method}: expected figures by name, or None, got {type(figures).__name__} ({where})")
    found: Metrics = {}
    for name, figure in jax.device_get(dict(figures or {})).items():
        try:
            found[str(name)] = float(figure)
        except (TypeError, ValueError):
            raise UserCodeError(f"{method}: {name}: expected a number, got {type(figure).__name__} ({where})") from None
        if str(name).endswith("loss") and not math.isfinite(found[str(name)]):
            raise Diverged.at(trainer.step, f"{name} is {found[str(name)]}, not a finite number ({where})")
    return found
