"""Chunks: files of many rows, whole games only.

A chunk is an `.npz`: a zip of one `.npy` per field (docs/data.md), and `meta`, JSON as UInt8 bytes. It holds no
pickles, and is read by a reader that knows none. Every part is checked before it is believed, because files are cut
short, mixed up and written by other programs.
"""

import io
import itertools
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from tengen import files
from tengen.data.format import rows as row
from tengen.data.format import sanity
from tengen.data.format.archive import HEADER_LIMIT, Archive
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat, Rows
from tengen.errors import OptionError, TengenError

SCHEMA = 1
_META = "meta"
_META_LIMIT = 1 << 20  # bytes; what is larger is no meta of ours
_OURS = ("schema", "network", "rows", "games", "format", "game", "version", "options")
_T = TypeVar("_T")


class ChunkError(TengenError):
    """A file that cannot be used as a chunk: which, and why."""


class CorruptChunk(ChunkError):
    """It is not, or is no longer, what was written."""


class ForeignChunk(ChunkError):
    """It is good, but of another game, without what is wanted of it, or larger than is allowed."""


class UnreadableChunk(ChunkError):
    """It is not there, may not be read, or is no regular file; what it holds is not known."""


@dataclass(frozen=True)
class Meta:
    """What a chunk says of itself."""

    game: GameIdentity
    form: RowFormat
    network: str  # which played the games
    rows: int
    games: int
    more: Mapping[str, Any] = field(default_factory=dict)  # whatever else the writer noted, in JSON values

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        own = {"schema": SCHEMA, "network": self.network, "rows": self.rows, "games": self.games}
        return {**own, "format": self.form.to_dict(), **self.game.to_dict(), **self.more}

    @staticmethod
    def from_dict(data: object) -> "Meta":
        """Undo `to_dict`. OptionError says what is wrong."""
        if not isinstance(data, dict):
            raise OptionError("meta: expected a mapping")
        if data.get("schema") != SCHEMA:
            raise OptionError(f"schema: expected {SCHEMA}, got {data.get('schema')!r}")
        for key in ("rows", "games"):
            if not isinstance(data.get(key), int) or isinstance(data[key], bool) or data[key] < 0:
                raise OptionError(f"{key}: expected a whole number of at least 0")
        if not isinstance(data.get("network"), str):
            raise OptionError("network: expected a name")
        more = {key: value for key, value in data.items() if key not in _OURS}
        form = RowFormat.from_dict(data.get("format"))
        return Meta(GameIdentity.from_dict(data), form, data["network"], data["rows"], data["games"], more)


def write_chunk(
    path: Path,
    form: RowFormat,
    rows: Mapping[str, Any],
    game: GameIdentity,
    *,
    network: str,
    more: Mapping[str, Any] | None = None,
    compress: bool = False,
) -> Meta:
    """Write rows (np, or jnp, which is fetched here) so that the file is complete or absent, and say what was written.

    OptionError if the rows are not as `form` says or cannot be true; TengenError if the file cannot be written.
    """
    host = {name: np.asarray(values) for name, values in rows.items()}
    count = row.check(form, host)
    wrong = list(sanity.problems(form, host))
    if wrong:
        raise OptionError(f"{path}: not written, these rows cannot be right: {'; '.join(wrong)}")
    taken = sorted(set(more or {}) & set(_OURS))
    if taken:
        raise ValueError(f"a chunk has a {taken[0]} of its own, choose another name")
    meta = Meta(game, form, network, count, count_games(host["game"]), dict(more or {}))
    file = io.BytesIO()
    pack(file, meta, ((name, host[name]) for name in form.fields), compress=compress)
    files.make_folder(path.parent)
    files.write_bytes(path, file.getvalue())
    return meta


def read_meta(path: Path) -> Meta:
    """What a chunk says of itself, without its rows. Raises ChunkError."""
    return _reading(path, _read_meta)


def read_chunk(
    path: Path, form: RowFormat | None = None, game: GameIdentity | None = None, limit: int | None = None
) -> tuple[Rows, Meta]:
    """The rows (np, read-only) with the fields of `form`, or all of them, after every check there is.

    Raises CorruptChunk, UnreadableChunk, or ForeignChunk if the chunk is not of `game`, lacks fields of `form`, or has
    more than `limit` rows. Nothing is unpacked before all of that, and the sizes of all arrays, are known to be right.
    """

    def read(archive: Archive) -> tuple[Rows, Meta]:
        meta = _read_meta(archive)
        check_wanted(path, meta, form, game, limit)
        rows: Rows = {}
        for name, (shape, dtype) in meta.form.fields.items():
            rows[name] = archive.read(name, (meta.rows, *shape), dtype)
        wrong = list(sanity.problems(meta.form, rows))
        if wrong:
            raise OptionError("; ".join(wrong))
        games = count_games(rows["game"])
        if games != meta.games:
            raise OptionError(f"game: expected {meta.games} different games, got {games}")
        wanted = meta.form.fields if form is None else form.fields
        return {name: rows[name] for name in wanted}, meta

    return _reading(path, read)


def pack(file: IO[bytes], meta: Meta, fields: Iterable[tuple[str, np.ndarray]], *, compress: bool = False) -> None:
    """Write a chunk into an open file; `fields` come in the order of the row format, and are taken one at a time."""
    text = np.frombuffer(json.dumps(meta.to_dict(), allow_nan=False).encode(), np.uint8)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        for name, values in itertools.chain([(_META, text)], fields):
            # A fixed date: the same rows give the same bytes.
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = archive.compression
            with archive.open(info, "w", force_zip64=True) as member:
                values = np.ascontiguousarray(values)
                np.lib.format.write_array_header_1_0(member, np.lib.format.header_data_from_array_1_0(values))
                member.write(values.reshape(-1).view(np.uint8).data)


def count_games(game: np.ndarray) -> int:
    """How many different games there are in the field `game` of rows."""
    number = game.astype(np.uint64)
    return len(np.unique((number[:, 0] << np.uint64(32)) | number[:, 1]))


def _reading(path: Path, read: Callable[[Archive], _T]) -> _T:
    """`read(archive)`, with every way in which it can fail told as a ChunkError."""
    try:
        with files.open_regular(path) as file:
            return read(Archive(file))
    except ChunkError:
        raise
    except OSError as error:  # also for what is no regular file
        raise UnreadableChunk(f"{path}: cannot be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise UnreadableChunk(f"{path}: cannot be read: not enough memory") from error
    except (ValueError, RecursionError) as error:  # OptionError and JSON's errors are ValueErrors
        raise CorruptChunk(f"{path}: not a good chunk: {error}") from error


def _read_meta(archive: Archive) -> Meta:
    """What the chunk says of itself, if there is one array for each field, as long as it must be."""
    meta = Meta.from_dict(json.loads(archive.read_text(_META, _META_LIMIT)))
    members, fields = archive.members, meta.form.fields
    expected = {f"{name}.npy" for name in (_META, *fields)}
    if members.keys() != expected:
        odd = min(members.keys() ^ expected)
        raise OptionError(f"expected one array per field, but {odd} is missing or too many")
    for name, each in meta.form.field_bytes.items():
        size = meta.rows * each
        if not size < members[f"{name}.npy"].size <= size + HEADER_LIMIT:
            raise OptionError(f"{name}: expected {size} bytes for {meta.rows} rows")
    return meta


def check_wanted(
    path: Path, meta: Meta, form: RowFormat | None, game: GameIdentity | None, limit: int | None = None
) -> None:
    """Raise ForeignChunk if a chunk that says this is not of `game`, lacks fields of `form`, or exceeds the limit."""
    if limit is not None and meta.rows > limit:
        raise ForeignChunk(
            f"{path}: has {meta.rows:,} rows, and data.max_chunk_rows allows {limit:,} in a file; raise that if the "
            "file is meant to be this large"
        )
    difference = "" if game is None else game.difference(meta.game)
    if difference:
        raise ForeignChunk(f"{path}: rows of another game: {difference}")
    if form is not None and not meta.form.holds(form):
        odd = next(name for name, field in form.fields.items() if meta.form.fields.get(name) != field)
        raise ForeignChunk(f"{path}: rows of another kind: they have no {odd} of the shape that is wanted")
