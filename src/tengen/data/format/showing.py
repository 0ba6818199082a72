"""The content of a chunk as text, for people: header, counts, and rows with boards, policy targets and outcomes."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tengen import games
from tengen.data.format import rows as row
from tengen.data.format.chunk import Meta, read_chunk
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.games.text import GO_LETTERS, LETTERS, render_grid

_MOVES = 5  # of a policy target that are shown
_FIRST = 16  # scalars that are shown
Lines = Iterator[str]


def show(path: Path, count: int) -> Lines:
    """The lines about a chunk and its first `count` rows. Raises ChunkError."""
    rows, meta = read_chunk(path)
    try:
        game = games.make(meta.game.name, **meta.game.options)
    except TengenError:  # a game that is not installed here
        game = None
    yield from _header(path, meta, rows)
    for index in range(min(count, meta.rows)):
        yield ""
        yield from _row(meta, game, {name: values[index] for name, values in rows.items()}, index)


def _header(path: Path, meta: Meta, rows: Mapping[str, np.ndarray]) -> Lines:
    yield f"{path}: {meta.rows:,} rows of {meta.games:,} games, {meta.form.row_bytes:,} bytes each"
    foreign = "in Lc0's format" if path.suffix == ".gz" else "in KataGo's format, by the rules in the scalars"
    rules = foreign if meta.game.partial else f"version {meta.game.version}"
    yield f"game:     {meta.game.name} ({rules}) {json.dumps(dict(meta.game.options))}"
    yield f"network:  {meta.network}"
    if meta.more:
        yield f"notes:    {json.dumps(dict(meta.more))}"
    yield "fields:"
    for name, (shape, dtype) in meta.form.fields.items():
        yield f"  {name:16} {dtype}{list(shape)}{_summary(name, rows[name])}"


def _summary(name: str, values: np.ndarray) -> str:
    """Counts and ranges that say whether a field is as it should be."""
    if not len(values):
        return ""
    if name == "outcome":
        return "  " + ", ".join(
            f"{word} {share:.1%}" for word, share in zip(("wins", "draws", "losses"), values.mean(0), strict=True)
        )
    if name == "moves_left" and row.is_unknown(values).all():
        return "  unknown"
    if name in ("ply", "moves_left", "search_value", "weight"):
        return f"  {values.min():g} to {values.max():g}"
    if name.endswith("_weight"):
        return f"  {int((values > 0).sum()):,} rows have the target"
    if name in ("planes", "scalars", "policy", "opponent_policy", "to_play", "game"):
        return ""
    missing = row.is_unknown(values).reshape(len(values), -1).any(-1)
    return f"  {int((~missing).sum()):,} rows have the target"


def _row(meta: Meta, game: Game | None, one: Mapping[str, Any], index: int) -> Lines:
    player = int(one["to_play"])
    number = "-".join(f"{int(word):08x}" for word in one["game"])
    yield f"row {index}: game {number}, move {int(one['ply']) + 1}, player {player} to move"
    planes = row.unpack_planes(one["planes"], meta.form.planes_shape)
    yield from _board(meta.game.name, planes, player)
    scalars = [f"{value:g}" for value in one["scalars"][:_FIRST]]
    if scalars:
        yield f"  scalars: {' '.join(scalars)}{' ...' if len(one['scalars']) > _FIRST else ''}"
    yield f"  policy:  {_policy(game, one['policy'], planes) if one['policy_weight'] > 0 else 'none'}"
    win, draw, loss = (float(share) for share in one["outcome"])
    yield f"  outcome: win {win:.0%}, draw {draw:.0%}, loss {loss:.0%}; search value {float(one['search_value']):+.3f}"
    if "score" in one:
        known = one.get("final_weight", 1) > 0 and not row.is_unknown(one["score"])
        yield "  score:   " + (f"{float(one['score']):+g}" if known else "unknown")
    left = "unknown" if row.is_unknown(one["moves_left"]) else int(one["moves_left"])
    yield f"  moves left: {left}, weight: {float(one['weight']):g}"


def _board(game: str, planes: np.ndarray, player: int) -> Lines:
    """Planes 1 and 2, the stones of the player to move and of the opponent in all games that ship; else any plane."""
    height, width, count = planes.shape
    if height * width < 2 or count < 2:
        return
    if not games.ships(game):
        yield "  the first of planes 1, 2, ... that is set at each point, as the player to move sees them"
        first = np.where(planes[..., 1:].any(-1), planes[..., 1:].argmax(-1) + 1, 0)
        wide = len(str(count - 1))
        yield from ("  " + " ".join(f"{plane or '.':>{wide}}" for plane in line) for line in first.tolist())
        return
    if count < 3:
        return
    signs = "XO" if player == 0 else "OX"
    on, own, other = (planes[..., plane] for plane in range(3))
    cells = np.where(own, signs[0], np.where(other, signs[1], np.where(on, ".", " ")))
    letters = GO_LETTERS if game == "go" else LETTERS
    columns = list(letters[:width]) if width <= len(letters) else [str(column % 10) for column in range(width)]
    from_below = game in ("go", "connect_four")
    names = [str(height - number if from_below else number + 1) for number in range(height)]
    if game == "connect_four":
        columns = [str(column + 1) for column in range(width)]
    yield from (f"  {line}" for line in render_grid(cells.tolist(), columns, names, {}).splitlines())


def _policy(game: Game | None, policy: np.ndarray, planes: np.ndarray) -> str:
    best = np.argsort(-policy.astype(np.float32), kind="stable")[:_MOVES]
    return ", ".join(f"{_name(game, int(move))} {float(policy[move]):.1%}" for move in best if policy[move] > 0)


def _name(game: Game | None, action: int) -> str:
    """The name of an action, where it does not depend on the position."""
    try:
        return game.action_name(None, action) if game is not None else f"action {action}"
    except Exception:
        return f"action {action}"
