"""What a game must have and which shapes its methods must give, checked without running them."""

import dataclasses
import inspect
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np

from tengen import importing
from tengen.errors import OptionError
from tengen.games.core import BoardKind, Game, Symmetry
from tengen.games.targets import Target

_BATCH = 2
_ODD_BATCH = 37


class BadGame(OptionError):
    """A game that breaks its contract: one line for each problem."""

    def __init__(self, name: str, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{name}: {problem}" for problem in self.problems))


def check_class(cls: Any, name: str) -> type[Game]:
    """`cls`, if it is a class of a game with all methods. Raises OptionError otherwise."""
    if not (isinstance(cls, type) and issubclass(cls, Game)):
        raise OptionError(f"{name}: {importing.where(cls)}: expected a class derived from tengen.games.Game")
    missing = {method for method in Game.__abstractmethods__ if not callable(getattr(cls, method))}
    missing |= cls.__abstractmethods__
    if missing:
        lacks = f"{cls.__name__} lacks the method {', '.join(sorted(missing))}"
        raise OptionError(f"{name}: {importing.where(cls)}: {lacks}")
    if not (isinstance(cls.Options, type) and dataclasses.is_dataclass(cls.Options)):
        raise OptionError(f"{name}: {importing.where(cls)}: Options: expected a frozen dataclass of settings")
    return cls


def make(cls: type[Game], options: Any, name: str) -> Game:
    """The game under that name, checked. Raises OptionError."""
    try:
        return _make(cls, options, name)
    except TypeError:  # the options have no hash
        return _make.__wrapped__(cls, options, name)


@lru_cache(maxsize=64)
def _make(cls: type[Game], options: Any, name: str) -> Game:
    try:
        game = cls(options)
    except OptionError:
        raise
    except (Exception, SystemExit) as error:
        raise BadGame(name, [f"{cls.__name__}(options): {importing.explain(error, cls)}"]) from error
    game.name = name  # networks and rows are saved with this name, by which the game is found again
    found = list(problems(game))
    if found:
        raise BadGame(name, found)
    return game


def problems(game: Game) -> Iterator[str]:
    """Everything that is wrong with attributes, shapes and types, in words; nothing is computed."""
    found = list(_attributes(game))
    yield from found
    if not found:
        yield from _shapes(game)
        yield from _symmetries(game)


def at(game: Game, method: str) -> str:
    """`FILE, line 12, in observe`: where that method of the game is written."""
    cls = type(game)
    return f"{importing.where(inspect.getattr_static(cls, method, cls))}, in {method}"


def _attributes(game: Game) -> Iterator[str]:
    where = importing.where(type(game))
    wanted = {
        "version": (lambda x: _whole(x, 0), "a whole number"),
        "num_actions": (lambda x: _whole(x, 1), "a whole number of at least 1"),
        "max_moves": (lambda x: _whole(x, 1) and x < 2**15, "a whole number from 1 to 32767"),
        "num_scalars": (lambda x: _whole(x, 0), "a whole number"),
        "planes_shape": (
            lambda x: isinstance(x, tuple) and len(x) == 3 and all(_whole(n, 0) for n in x) and min(x[:2]) > 0,
            "a tuple of height, width and planes",
        ),
        "extra_targets": (
            lambda x: (
                isinstance(x, tuple) and all(isinstance(t, Target) for t in x) and _names(tuple(t.name for t in x))
            ),
            "a tuple of Target with different names",
        ),
        "players": (lambda x: _names(x) and len(x) in (1, 2), "a tuple of the names of player 0 and player 1"),
        "drawn_as": (lambda x: x is None or x in get_args(BoardKind), f"one of {', '.join(get_args(BoardKind))}"),
        "roles": (lambda x: _names(x) and len(x) in (1, 2), "a tuple of one or two names"),
        "options": (lambda x: isinstance(x, game.Options), f"an instance of {game.Options.__name__}"),
    }
    for name, (good, expected) in wanted.items():
        if not hasattr(game, name):
            yield f"{where}: {name} is missing, expected {expected}"
        elif not good(getattr(game, name)):
            yield f"{where}: {name}: expected {expected}, got {getattr(game, name)!r}"


def _shapes(game: Game) -> Iterator[str]:
    """Traces every method, alone and in a batch."""
    state, wrong = _traced(game, "init", jax.eval_shape(lambda: jax.random.key(0)))
    if wrong:
        yield from wrong
        return
    yield from _moves(game, state)
    expected: dict[str, dict[str, tuple[tuple[int, ...], Any]]] = {
        "legal_actions": {"": ((game.num_actions,), bool)},
        "to_play": {"": ((), np.int32)},
        "is_over": {"": ((), bool)},
        "returns": {"": ((2,), np.float32)},
        "observe": {"planes": (game.planes_shape, bool), "scalars": ((game.num_scalars,), np.float32)},
    }
    for method, parts in expected.items():
        found, wrong = _traced(game, method, state)
        yield from wrong
        for part, (shape, dtype) in () if wrong else parts.items():
            one = getattr(found, part, None) if part else found
            yield from _same_array(game, method, f"{part}: " * bool(part), shape, dtype, one)
    targets, wrong = _traced(game, "final_targets", state)
    yield from wrong or _targets(game, targets)
    split, wrong = _traced(game, "split", state)
    joined, wrong = (None, wrong) if wrong else _traced(game, "join", *split)
    yield from wrong or _same_state(game, state, joined, "join")


def _moves(game: Game, state: Any) -> Iterator[str]:
    """`step` is what is called, and `_play` what users write."""
    action = jax.ShapeDtypeStruct((), np.int32)
    after, wrong = _traced(game, "_play", state, action)
    if not wrong and jax.tree.structure(after) == jax.tree.structure(state):
        after, wrong = _traced(game, "step", state, action, written="_play")
    yield from wrong or _same_state(game, state, after, "_play")


def _targets(game: Game, found: Any) -> Iterator[str]:
    declared = {target.name: target for target in game.extra_targets}
    if set(found) != set(declared):
        where, given = at(game, "final_targets"), ", ".join(found) or "nothing"
        yield f"{where}: expected the targets {', '.join(declared) or 'none'} of extra_targets, got {given}"
        return
    for name, target in declared.items():
        shape = target.shape(game.planes_shape, game.num_actions)
        whole = (2, *shape) if target.sides == "each" else shape
        yield from _same_array(game, "final_targets", f"{name}: ", whole, None, found[name])
        if callable(target.loss):
            yield from _loss(target, shape)


def _loss(target: Target, shape: tuple[int, ...]) -> Iterator[str]:
    """What is wrong with a user's loss for batches of the smallest and of an unusual size."""
    assert callable(target.loss)
    where = f"{importing.where(target.loss)}: the loss of {target.name}"
    for batch in (_BATCH, _ODD_BATCH):
        rows = jax.ShapeDtypeStruct((batch, *shape), jnp.float32)
        try:
            loss = jax.eval_shape(target.loss, rows, rows)
        except (Exception, SystemExit) as error:
            yield f"{where}: {importing.explain(error)}"
            return
        if getattr(loss, "shape", None) not in ((batch,), rows.shape):
            allowed = " or ".join(f"[{', '.join(['B', *map(str, more)])}]" for more in dict.fromkeys(((), shape)))
            yield f"{where}: expected the shape {allowed}, got {_words(loss)}, B = {batch}"
            return


def _symmetries(game: Game) -> Iterator[str]:
    where = at(game, "symmetries")
    try:
        found = game.symmetries
    except Exception as error:
        yield f"{where}: {importing.explain(error)}"
        return
    if not (isinstance(found, tuple) and found and all(isinstance(symmetry, Symmetry) for symmetry in found)):
        yield f"{where}: expected a tuple of Symmetry, the first of which is the identity"
        return
    every = np.arange(game.num_actions)
    for symmetry in found:
        actions = np.asarray(symmetry.actions)
        if actions.shape != (2, game.num_actions) or (np.sort(actions, axis=1) != every).any():
            expected = f"an array [2, {game.num_actions}] that renumbers the actions of each player"
            yield f"{where}: {symmetry.name}: actions: expected {expected}"
            continue
        for part, shape in (("board", game.planes_shape), ("scalars", (game.num_scalars,))):
            try:
                moved = jax.eval_shape(getattr(symmetry, part), jax.ShapeDtypeStruct(shape, jnp.float32))
            except Exception as error:
                yield f"{where}: {symmetry.name}: {part}: {importing.explain(error)}"
                continue
            if getattr(moved, "shape", None) != shape:
                yield f"{where}: {symmetry.name}: {part}: expected the shape {list(shape)}, got {_words(moved)}"
    if (np.asarray(found[0].actions) != every).any():
        yield f"{where}: expected the identity first, got {found[0].name}"


def _traced(game: Game, method: str, *args: Any, written: str | None = None) -> tuple[Any, list[str]]:
    """The shapes that a method gives, and problems if it raises, also in a batch. `written` is what users write."""
    function = getattr(game, method)
    batch = jax.tree.map(lambda x: jax.ShapeDtypeStruct((_BATCH, *x.shape), x.dtype), args)
    try:
        found = jax.eval_shape(function, *args)
        jax.eval_shape(jax.vmap(function), *batch)
    except (Exception, SystemExit) as error:
        return None, [f"{at(game, written or method)}: {importing.explain(error)}{_hint(error)}"]
    return found, []


def _hint(error: BaseException) -> str:
    if isinstance(error, jax.errors.ConcretizationTypeError | jax.errors.TracerArrayConversionError):
        return "; a method is compiled: it cannot use if, int() or NumPy on values of the state, see jnp.where"
    return ""


def _same_state(game: Game, before: Any, after: Any, method: str) -> Iterator[str]:
    """The state after a move must have the structure, shapes and types of the one before."""
    where = at(game, method)
    if jax.tree.structure(before) != jax.tree.structure(after):
        yield f"{where}: expected a state as init gives it, {_structure(before)}, got {_structure(after)}"
        return
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(before)[0]]
    for name, one, other in zip(names, jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            yield f"{where}: state{name}: expected {_words(one)} as init gives it, got {_words(other)}"


def _same_array(game: Game, method: str, what: str, shape: tuple[int, ...], dtype: Any, found: Any) -> Iterator[str]:
    """`dtype` None: any."""
    if getattr(found, "shape", None) != shape or (dtype is not None and found.dtype != dtype):
        expected = ("" if dtype is None else str(np.dtype(dtype))) + str(list(shape))
        yield f"{at(game, method)}: {what}expected {expected}, got {_words(found)}"


def _words(found: Any) -> str:
    if hasattr(found, "shape"):
        return f"{found.dtype}{list(found.shape)}"
    return type(found).__name__ if jax.tree.leaves(found) else repr(found)


def _structure(found: Any) -> str:
    return str(jax.tree.structure(found)).removeprefix("PyTreeDef(").removesuffix(")")


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _names(value: Any) -> bool:
    texts = isinstance(value, tuple) and all(isinstance(name, str) and name for name in value)
    return texts and len(set(value)) == len(value)
