"""Finished games as compressed bytes, on their way from a self-play actor to the learner. Needs no Ray."""

import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tengen.selfplay.finished import Finished

_LEVEL = 1  # of zlib: higher ones take several times as long and save little
_COUNTS = ("rows_count", "others_count", "games_count")
_NESTED = ("rows", "extra")


@dataclass(frozen=True)
class GamesChunk:
    """Whole games on one board."""

    board: int  # index among the boards of the run
    rows: int
    others: int  # rows that are written and not learned from; they follow the others
    games: int
    data: bytes  # see `pack`


def pack(board: int, parts: Sequence[Finished]) -> GamesChunk:
    """Games of several calls, whose arrays are on the host (`selfplay.on_host`), in that order."""
    tables: dict[str, np.ndarray] = {}
    for name in Finished._fields:
        if name == "rows":
            for key in parts[0].rows:
                cut = [np.split(np.asarray(part.rows[key]), [int(part.rows_count)]) for part in parts]
                tables[f"{name}.{key}"] = np.concatenate([piece[k] for k in (0, 1) for piece in cut])
        elif name == "extra":
            for key in parts[0].extra:
                tables[f"{name}.{key}"] = np.concatenate([np.asarray(part.extra[key]) for part in parts])
        elif name not in _COUNTS and getattr(parts[0], name) is not None:
            tables[name] = np.concatenate([np.asarray(getattr(part, name)) for part in parts])
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **tables)
    rows = sum(int(part.rows_count) for part in parts)
    return GamesChunk(
        board, rows, len(tables["rows.ply"]) - rows, len(tables["length"]), zlib.compress(file.getbuffer(), _LEVEL)
    )


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
    counts = zip(_COUNTS, (chunk.rows, chunk.others, chunk.games), strict=True)
    fields |= {name: np.int32(count) for name, count in counts}
    return Finished(**fields)
