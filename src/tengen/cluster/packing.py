"""Finished games as compressed bytes, on their way from a self-play actor to the learner. Needs no Ray."""

import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tengen.selfplay.finished import Finished

_LEVEL = 1  # of zlib: higher ones take several times as long and save little
_COUNTS = ("rows_count", "games_count")
_NESTED = ("rows", "extra")


@dataclass(frozen=True)
class GamesChunk:
    """Whole games on one board."""

    board: int  # index among the boards of the run
    rows: int
    games: int
    data: bytes  # see `pack`


def pack(board: int, parts: Sequence[Finished]) -> GamesChunk:
    """Games of several calls, whose arrays are on the host (`selfplay.on_host`), in that order."""
    tables: dict[str, np.ndarray] = {}
    for name in Finished._fields:
        if name in _NESTED:
            for key in getattr(parts[0], name):
                tables[f"{name}.{key}"] = np.concatenate([np.asarray(getattr(part, name)[key]) for part in parts])
        elif name not in _COUNTS:
            tables[name] = np.concatenate([np.asarray(getattr(part, name)) for part in parts])
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **tables)
    rows, games = len(tables["rows.ply"]), len(tables["length"])
    return GamesChunk(board, rows, games, zlib.compress(file.getbuffer(), _LEVEL))


def unpack(chunk: GamesChunk) -> Finished:
    """The games, as `selfplay.on_host` gives them."""
    fields: dict[str, Any] = {name: {} for name in _NESTED}
    with np.load(io.BytesIO(zlib.decompress(chunk.data)), allow_pickle=False) as tables:
        for name in tables.files:
            field, _, key = name.partition(".")
            if key:
                fields[field][key] = tables[name]
            else:
                fields[field] = tables[name]
    fields |= {"rows_count": np.int32(chunk.rows), "games_count": np.int32(chunk.games)}
    return Finished(**fields)
