"""Which function gets which batches, and what these batches hold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from tengen import importing, schema
from tengen.context.settings import ContextSettings
from tengen.data.format.rows import EXTRAS, RowFormat
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game

COLOURS = ("black", "white")
"""The names of players 0 and 1 here, whatever the game calls them."""

ACTORS = ("actor_black", "actor_white")
LABELS = (*ACTORS, "actor", "game_start", "game_end", "train", "train_control")

NEEDED = ("legal", "version", "mask", "count")
"""Fields that every batch of positions has."""

Features = Callable[[Any], Mapping[str, Any]]
"""(states [N, ...]) -> arrays [N, ...] by name, written with `jax.numpy`."""

Shapes = dict[str, jax.ShapeDtypeStruct]
"""Name -> shape and type of ONE row."""


@dataclass(frozen=True)
class Listener:
    """A function, and what its batches hold. Two listeners that are equal can share batches."""

    function: Callable[[Any], Any]
    batch_size: int
    fields: tuple[str, ...] | None = None  # None: all
    features: Features | None = None

    def holds(self, name: str) -> bool:
        return self.fields is None or name in self.fields

    def feature_shapes(self, game: Game) -> Shapes:
        """The arrays that `features` adds to a batch. OptionError if the function is not one."""
        return {} if self.features is None else feature_shapes(self.features, game)


def listener(
    label: str,
    function: Any,
    game: Game,
    settings: ContextSettings,
    batch_size: int | None,
    fields: Sequence[str] | None,
    features: Features | None,
) -> Listener:
    """What `GameContext.on` was given, checked. OptionError says what is wrong."""
    where = f"on: {label}"
    if not callable(function):
        raise OptionError(f"{where}: expected a function, got {schema.quote(function)}")
    if label not in (*ACTORS, "actor", "train"):
        if (batch_size, fields, features) != (None, None, None):
            raise OptionError(f"{where}: batch_size, fields and features are for batches of positions and rows")
        return Listener(function, 1)
    try:
        sizes = {} if batch_size is None else {"batch_size": batch_size}
        size = schema.from_options(ContextSettings, {"batch_size": settings.batch_size, **sizes}, where).batch_size
        chosen = None if fields is None else _checked_fields(label, fields, game)
        made = Listener(function, size, chosen, features)
        if label == "train":
            if chosen == () and features is None:
                raise OptionError("fields: expected at least one")
            row_format(game, settings, made)
        taken = set(made.feature_shapes(game)) & set(_known(label, game))
    except OptionError as error:
        raise error if str(error).startswith(where) else OptionError(f"{where}: {error}") from error
    if taken:
        raise OptionError(f"{where}: features: {', '.join(sorted(taken))}: the batch has a field of that name already")
    return made


def labels(given: Mapping[str, Listener]) -> dict[str, str]:
    """The label of each kind of batch that somebody listens to. TengenError if a colour has no function."""
    if "train_control" in given and "train" not in given:
        raise TengenError('start: train_control is called after batches for train: call on("train", ...), too')
    own = {label: label for label in given}
    if "actor" in given:
        return own | dict.fromkeys(ACTORS, "actor")
    missing = [label for label in ACTORS if label not in given]
    if missing:
        hint = "; the same function may serve both colours" if len(missing) == 1 else ', or on("actor", ...) for both'
        calls = ", ".join(f'on("{label}", ...)' for label in missing)
        raise TengenError(f"start: nobody answers {' and '.join(missing)}: call {calls} first{hint}")
    # One function gets both colours together, in fuller batches.
    black, white = ACTORS
    return own | {white: black if given[black] == given[white] else white}


def feature_shapes(features: Features, game: Game) -> Shapes:
    """The arrays that a function of states returns. OptionError, with the user's file and line, if it fails."""
    count = 37
    states = jax.eval_shape(jax.vmap(game.init), jax.random.split(jax.random.key(0), count))
    try:
        found = jax.eval_shape(features, states)
    except Exception as error:
        said = "it is compiled, so write it with jax.numpy: " if isinstance(error, jax.errors.JAXTypeError) else ""
        raise OptionError(f"features: {said}{importing.explain(error)}") from error
    where = f"features: {importing.where(features)}"
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        raise OptionError(f"{where}: expected a dict of arrays by name, got {type(found).__name__}")
    for name, array in found.items():
        if not isinstance(array, jax.ShapeDtypeStruct) or array.shape[:1] != (count,):
            shape = getattr(array, "shape", type(array).__name__)
            raise OptionError(f"{where}: {name}: expected one entry per state, [{count}, ...] for {count}, got {shape}")
    return {name: jax.ShapeDtypeStruct(array.shape[1:], array.dtype) for name, array in found.items()}


def row_format(game: Game, settings: ContextSettings, train: Listener | None) -> RowFormat:
    """The rows of a context, with the targets that the fields of `train` name. OptionError if the game has none."""
    for name in settings.targets:
        if name not in (known := ("moves_left", *_targets(game))):
            raise OptionError(f"GameContext: targets: {name}: {schema.unknown('target', name, known)}")
    named = train.fields if train is not None and train.fields is not None else ()
    return RowFormat.of(game, {*settings.targets, *(set(named) & set(_targets(game)))})


def _targets(game: Game) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*EXTRAS, *(target.name for target in game.extra_targets))))


def _known(label: str, game: Game) -> tuple[str, ...]:
    if label == "train":
        return (*RowFormat.of(game).fields, "version", "opponent_weight", *_targets(game))
    return ("planes", "scalars", "player", "colour", "ply", "game", *NEEDED)


def _checked_fields(label: str, fields: Any, game: Game) -> tuple[str, ...]:
    known = _known(label, game)
    if isinstance(fields, str) or not all(isinstance(name, str) for name in fields):
        raise OptionError(f"fields: expected a list of names, got {schema.quote(fields)}")
    for name in fields:
        if name not in known:
            raise OptionError(f"fields: {name}: {schema.unknown('field', name, known)}")
    if "opponent_weight" in fields and "opponent_policy" not in fields:
        raise OptionError("fields: opponent_weight: belongs to opponent_policy; add that, too")
    return tuple(dict.fromkeys((*fields, *(() if label == "train" else NEEDED))))


def numpy_dtype(dtype: Any) -> np.dtype:
    """The type of a field in a batch for callbacks: half precision becomes float32."""
    return np.dtype(np.float32) if np.dtype(dtype) in (np.float16, jax.numpy.bfloat16) else np.dtype(dtype)
