"""Games as the page draws them: the first position, and what each move changes."""

import contextlib
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tengen.analysis.board_picture import EMPTY, board_of, has_board, place_of, player_name
from tengen.data.records import moves
from tengen.data.records.records import Record, RecordError
from tengen.games.chess import Chess
from tengen.games.core import Game

_SIGNS = {EMPTY: ".", 0: "x", 1: "o"}
_COLOURS = {"connect_four": ("red", "yellow"), "hex": ("red", "blue")}  # of the stones, where the rules name none


def draw_position(game: Game, state: Any) -> dict[str, Any]:
    """One position as JSON: a `kind` of board, and the cells or points on it."""
    if has_board(game):
        board = board_of(game, state)
        height, width = board.shape
        cells = "".join(_SIGNS[int(stone)] for stone in board.stones.reshape(-1))
        about = {"columns": list(board.columns), "rows": list(board.rows), "width": width, "height": height}
        return {"kind": board.kind, "cells": cells, **about}
    text = game.render(state)
    if (fen := fen_of(text)) is not None:
        cells = "".join("." * int(sign) if sign.isdigit() else sign for sign in fen.split()[0] if sign != "/")
        side = math.isqrt(len(cells))
        rows = [str(side - row) for row in range(side)]
        about = {"columns": list("abcdefgh"[:side]), "rows": rows, "width": side, "height": side}
        return {"kind": "chess", "cells": cells, "fen": fen, **about}
    if game.name == "hironaka":
        points = np.asarray(state.points)
        live = [[float(f"{x:.6g}") for x in point] for point in points if point[0] >= 0]
        return {"kind": "hironaka", "points": live, "chosen": np.flatnonzero(np.asarray(state.chosen)).tolist()}
    return {"kind": "text", "text": text}


def fen_of(text: str) -> str | None:
    return next((line.removeprefix("fen:").strip() for line in text.splitlines() if line.startswith("fen:")), None)


def seat_name(game: Game, player: int) -> str:
    """The name of a player on the page, with the colour of the stones if the name is not a colour."""
    name = player_name(game, player)
    return f"{name} ({_COLOURS[game.name][player]})" if game.name in _COLOURS else name


def move_names(game: Game, states: Sequence[Any], actions: Sequence[int]) -> list[str]:
    """What people call the moves of a line, of which `states` are the positions: chess has algebraic notation."""
    if isinstance(game, Chess):
        return game.line(states[0], actions)
    return [game.action_name(state, action) for state, action in zip(states, actions, strict=False)]


def place_on(game: Game, state: Any, action: int) -> list[int] | None:
    """The cells that an action means, as numbers: one where a stone is put, two where a piece moves."""
    if has_board(game):
        board = board_of(game, state)
        if (place := place_of(board, action)) is None:
            return None
        return [place[0] * board.shape[1] + place[1]]
    name = game.action_name(state, action)
    if (fen := fen_of(game.render(state))) is not None and len(name) in (4, 5):
        side = fen.split()[0].count("/") + 1
        return [(side - int(name[at + 1])) * side + "abcdefgh".index(name[at]) for at in (0, 2)]
    return None


def play_through(record: Record, lines: Sequence[Sequence[int]] = ()) -> dict[str, Any]:
    """A whole game with its variations, which are `lines` from the start. RecordError if a move is not legal."""
    game = moves.game_of(record)
    states = list(moves.replay(record))
    return from_states(record, game, states) | {"variations": variations(record, game, states, lines)}


def variations(
    record: Record, game: Game, states: Sequence[Any], lines: Sequence[Sequence[int]]
) -> list[dict[str, Any]]:
    """Other lines of a game whose positions are known: after how many moves each begins, and its moves from there.

    A line ends before a move that is not legal, and is left out if nothing of it is left.
    """
    found: dict[tuple[int, ...], dict[str, Any]] = {}
    for line in lines:
        pairs = zip(line, record.actions, strict=False)
        ply = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(line), len(record.actions)))
        after: list[Any] = []
        with contextlib.suppress(RecordError):
            after.extend(moves.play_on(game, states[ply], line[ply:]))
        actions = tuple(line[ply : ply + len(after) - 1])
        if actions and (key := (*line[:ply], *actions)) not in found:
            found[key] = {"ply": ply, "moves": _positions(game, after, actions, [None] * len(actions))["moves"]}
    return list(found.values())


def from_states(record: Record, game: Game, states: Sequence[Any]) -> dict[str, Any]:
    """A whole game whose positions, from the start to the end, are known."""
    return {**heading(record, game), **_positions(game, states, record.actions, record.values)}


def heading(record: Record, game: Game) -> dict[str, Any]:
    return {
        "game": record.game,
        "id": record.id,
        "network": record.network,
        "date": record.date,
        "players": list(record.players),
        "seats": [seat_name(game, 0), seat_name(game, 1)],
        "result": record.result,
        "score": record.score,
        "ending": record.ending,
        "opening": record.opening,
        "length": len(record.actions),
        "swing": _swing(record),
        "notes": dict(record.notes),
    }


def _positions(
    game: Game, states: Sequence[Any], actions: Sequence[int], values: Iterable[float | None]
) -> dict[str, Any]:
    drawn = [draw_position(game, state) for state in states]
    found = []
    named = zip(move_names(game, states, actions), actions, values, strict=True)
    for ply, (name, action, value) in enumerate(named):
        state, before, after = states[ply], drawn[ply], drawn[ply + 1]
        player = int(game.to_play(state))
        move: dict[str, Any] = {"name": name, "player": player, "action": int(action)}
        if (place := place_on(game, state, action)) is not None:
            move["place"] = place
        if value is not None:
            move["value"] = round(value * (1 - 2 * player), 3)  # for player 0
        if "cells" in after:
            changed = [(at, sign) for at, sign in enumerate(after["cells"]) if before["cells"][at] != sign]
            move["set"] = [part for pair in changed for part in pair]
        else:
            move["position"] = after
        found.append(move)
    return {"start": drawn[0], "moves": found}


def _swing(record: Record) -> float:
    """How far the winner was behind: from 0 to 2. Players alternate."""
    if not record.result:
        return 0.0
    winner = 0 if record.result > 0 else 1
    worst = [value if ply % 2 == winner else -value for ply, value in enumerate(record.values) if value is not None]
    return round(max(0.0, -min(worst, default=0.0)), 3)
