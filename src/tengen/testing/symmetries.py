"""Whether symmetries leave the rules unchanged: games are played again through each of them."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tengen.games import contract
from tengen.games.core import Game, Symmetry
from tengen.testing.playing import PlayedGames, moment, record

Mirrored = Callable[[Game, Symmetry, PlayedGames], Any]
"""The starting positions [B, ...] seen through a symmetry; None if they cannot be made."""


def problems(game: Game, played: PlayedGames, notes: list[str], mirrored: Mirrored | None = None) -> Iterator[str]:
    """Problems with the tables of the symmetries, and with games that are played through them."""
    found = list(_group(game))
    yield from found
    if found:
        return
    for symmetry in game.symmetries[1:]:
        starts = (mirrored or start_through)(game, symmetry, played)
        if starts is None:
            what = f"{contract.at(game, 'symmetries')}: {symmetry.name}"
            notes.append(f"{what}: not played, because its starting position cannot be made from text")
            continue
        yield from _played(game, symmetry, played, starts)


def _group(game: Game) -> Iterator[str]:
    where, tables = contract.at(game, "symmetries"), [symmetry.actions for symmetry in game.symmetries]
    names = [symmetry.name for symmetry in game.symmetries]
    if len(set(names)) < len(names):
        yield f"{where}: expected different names, got {', '.join(names)}"
    known = {table.tobytes() for table in tables}
    if len(known) < len(tables):
        yield f"{where}: two symmetries renumber the actions alike"
    for one, name in zip(tables, names, strict=True):
        for other, second in zip(tables, names, strict=True):
            if np.take_along_axis(one, other, axis=1).astype(one.dtype).tobytes() not in known:
                yield f"{where}: {second}, then {name} is a symmetry as well, which is not among them"
                return


def start_through(game: Game, symmetry: Symmetry, played: PlayedGames) -> Any:
    """The starting positions through the symmetry, if they look the same or can be read from a mirrored board."""
    starts = jax.tree.map(lambda leaf: leaf[0], played.states)
    planes, scalars = played.planes[0], played.scalars[0]
    wanted = on_boards(symmetry, planes[None])[0], with_scalars(symmetry, scalars[None])[0]
    if (wanted[0] == planes).all() and (wanted[1] == scalars).all():
        return starts
    if (planes != planes[:1]).any() or (scalars != scalars[:1]).any():
        return None
    state = _from_board(game, symmetry, played)
    seen = None if state is None else game.observe(state)
    if seen is None or (seen.planes != wanted[0][0]).any() or (seen.scalars != wanted[1][0]).any():
        return None
    return jax.tree.map(lambda leaf, like: np.broadcast_to(leaf, like.shape), state, starts)


def _from_board(game: Game, symmetry: Symmetry, played: PlayedGames) -> Any:
    """The first position with the symmetry applied to the board that `render` prints, row by row below its columns."""
    lines = game.render(played.state(0, 0)).splitlines()
    height, width, _ = game.planes_shape
    cells: Any = np.array([(line.split()[1:] + [""] * width)[:width] for line in lines[1 : height + 1]])
    if cells.shape != (height, width):
        return None
    for r, row in enumerate(np.asarray(symmetry.board(cells)), start=1):
        lines[r] = f"{lines[r].split()[0]} {' '.join(row)}"
    try:
        return _read(game, "\n".join(lines))
    except ValueError:
        return None


@lru_cache(maxsize=16)
def _read(game: Game, text: str) -> Any:
    return game.from_text(text)


def _played(game: Game, symmetry: Symmetry, played: PlayedGames, starts: Any) -> Iterator[str]:
    actions = symmetry.actions[played.to_play, played.actions]
    through = record(game, starts, actions=actions)
    legal = np.take_along_axis(played.legal, symmetry.inverse[played.to_play], axis=-1)
    expected = {
        "to_play": (through.to_play, played.to_play),
        "is_over": (through.over, played.over),
        "legal_actions": (through.legal, legal),
        "returns": (through.returns, played.returns),
        "observe, planes": (through.planes, on_boards(symmetry, played.planes)),
        "observe, scalars": (through.scalars, with_scalars(symmetry, played.scalars)),
    }
    for target in game.extra_targets:
        value = played.targets[target.name]
        if target.per == "point" and target.sides != "each":
            value = on_boards(symmetry, value)
        elif target.per == "point":
            value = np.stack([on_boards(symmetry, value[:, :, side]) for side in (0, 1)], 2)
        elif target.per == "action":  # `opposite` and `same` are in the order of player 0's actions
            each = value if target.sides == "each" else np.stack([value, value], 2)
            each = np.stack([each[:, :, side][..., symmetry.inverse[side]] for side in (0, 1)], 2)
            value = each if target.sides == "each" else each[:, :, 0]
        expected[f"final_targets, {target.name}"] = (through.targets[target.name], value)
    for what, (found, wanted) in expected.items():
        bad = (found != wanted).reshape(*played.over.shape, -1).any(-1)
        if what.startswith("final_targets"):
            bad &= played.over
        if bad.any():
            t, g = (int(x) for x in np.argwhere(bad)[0])
            where, method = contract.at(game, "symmetries"), what.partition(",")[0]
            when = moment(game, played, t, g)
            yield f"{where}: {symmetry.name}: {when}: {what} differs in the game seen through it ({method})"
            return


def with_scalars(symmetry: Symmetry, values: np.ndarray) -> np.ndarray:
    """[T, B, S] seen through the symmetry."""
    return np.asarray(jax.vmap(jax.vmap(symmetry.scalars))(jnp.asarray(values)))


def on_boards(symmetry: Symmetry, values: np.ndarray) -> np.ndarray:
    """[T, B, H, W, ...] seen through the symmetry."""
    boards: Any = np.moveaxis(values, (2, 3), (0, 1))
    return np.moveaxis(np.asarray(symmetry.board(boards)), (0, 1), (2, 3))
