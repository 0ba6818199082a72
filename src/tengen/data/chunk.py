"""Chunks: files of many rows, whole games only.

A chunk is an `.npz`: a zip of one `.npy` per field (docs/data.md), and `meta`, JSON as UInt8 bytes. It holds no
pickles, and is read by a reader that knows none. Every part is checked before it is believed, because files are cut
short, mixed up and written by other programs.
"""

import errno
import io
import itertools
import json
import lzma
import math
import struct
import threading
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from tengen import atomic
from tengen.data import rows as row
from tengen.data import sanity
from tengen.data.identity import GameIdentity
from tengen.data.rows import RowFormat, Rows
from tengen.errors import OptionError, TengenError

SCHEMA = 1
_META = "meta"
_META_LIMIT = 1 << 20  # bytes; what is larger is no meta of ours
_HEADER_LIMIT = 4096  # bytes of an .npy file before its numbers
# What zipfile and its decompressors, NumPy's header and JSON raise for files that are not whole.
_BROKEN = (
    *(ValueError, KeyError, IndexError, EOFError, OverflowError, RuntimeError, OSError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
)
_OF_CONTENT = (None, errno.EINVAL)  # what seeking to a place before the file's beginning gives
# NumPy reads headers with `ast`, and Python 3.11 gives SystemErrors when several threads use that at once.
_PARSING = threading.Lock()
_OURS = ("schema", "network", "rows", "games", "format", "game", "version", "options")


class ChunkError(TengenError):
    """A file that cannot be used as a chunk: which, and why."""


class CorruptChunk(ChunkError):
    """It is not, or is no longer, what was written."""


class ForeignChunk(ChunkError):
    """It is good, but of another game, or without what is wanted of it."""


class UnreadableChunk(ChunkError):
    """It is not there, or may not be read; what it holds is not known."""


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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(path, file.getvalue())
    except OSError as error:
        raise TengenError(cannot_write(path, error)) from error
    return meta


def read_meta(path: Path) -> Meta:
    """What a chunk says of itself, without its rows. Raises ChunkError."""
    return _reading(path, _read_meta)


def read_chunk(path: Path, form: RowFormat | None = None, game: GameIdentity | None = None) -> tuple[Rows, Meta]:
    """The rows (np, read-only) with the fields of `form`, or all of them, after every check there is.

    Raises CorruptChunk, UnreadableChunk, or ForeignChunk if the chunk is not of `game` or lacks fields of `form`.
    """

    def read(archive: zipfile.ZipFile) -> tuple[Rows, Meta]:
        meta = _read_meta(archive)
        check_wanted(path, meta, form, game)
        expected = {f"{name}.npy" for name in (_META, *meta.form.fields)}
        found = archive.namelist()
        if set(found) != expected or len(found) != len(expected):
            odd = sorted(set(found) ^ expected) or ["a name that is there twice"]
            raise OptionError(f"expected one array per field, but {odd[0]} is missing or too many")
        rows = {}
        for name, (shape, dtype) in meta.form.fields.items():
            rows[name] = _read_array(archive, name, (meta.rows, *shape), dtype)
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


def cannot_write(path: Path, error: OSError) -> str:
    """What to tell somebody whose file could not be written."""
    advice = "change its permissions" if isinstance(error, PermissionError) else "make room or choose another place"
    return f"{path}: cannot be written: {error.strerror or error}; {advice}, then start the run again"


def _reading(path: Path, read: Any) -> Any:
    """`read(archive)`, with every way in which it can fail told as a ChunkError."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise UnreadableChunk(f"{path}: cannot be read: {error.strerror or error}") from error
    with file:
        try:
            with zipfile.ZipFile(file) as archive:
                return read(archive)
        except ChunkError:
            raise
        except MemoryError as error:
            raise UnreadableChunk(f"{path}: cannot be read: not enough memory") from error
        except _BROKEN as error:
            if isinstance(error, OSError) and error.errno not in _OF_CONTENT:
                raise UnreadableChunk(f"{path}: cannot be read: {error.strerror or error}") from error
            raise CorruptChunk(f"{path}: not a good chunk: {error or type(error).__name__}") from error


def _read_meta(archive: zipfile.ZipFile) -> Meta:
    info = archive.getinfo(f"{_META}.npy")
    if info.file_size > _META_LIMIT:
        raise OptionError(f"{_META}: expected at most {_META_LIMIT} bytes, got {info.file_size}")
    shape, dtype, content = _open_array(archive, _META)
    if dtype != np.uint8 or shape != (len(content),):
        raise OptionError(f"{_META}: expected text as bytes")
    return Meta.from_dict(json.loads(bytes(content)))


def _read_array(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The array of that name, if it has this shape and type; only then is memory spent on it."""
    size = math.prod(shape) * dtype.itemsize
    if not size <= archive.getinfo(f"{name}.npy").file_size <= size + _HEADER_LIMIT:
        raise OptionError(f"{name}: expected {size} bytes for {shape[0]} rows")
    found_shape, found_dtype, content = _open_array(archive, name)
    if found_shape != shape or found_dtype != dtype:
        wanted, found = f"{dtype} {list(shape)}", f"{found_dtype} {list(found_shape)}"
        raise OptionError(f"{name}: expected {wanted}, got {found}")
    if len(content) != size:
        raise OptionError(f"{name}: expected {size} bytes for {shape[0]} rows, got {len(content)}")
    return np.frombuffer(content, dtype).reshape(shape)


def _open_array(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype, memoryview]:
    """Shape, type and bytes of an `.npy`, whose checksum is compared. ValueError if it is none, or of objects."""
    data = archive.read(f"{name}.npy")
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise OptionError(f"{name}: expected .npy version 1.0, got {version[0]}.{version[1]}")
    with _PARSING:
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.hasobject or fortran:
        raise OptionError(f"{name}: expected plain numbers in C order")
    return shape, dtype, memoryview(data)[file.tell() :]


def check_wanted(path: Path, meta: Meta, form: RowFormat | None, game: GameIdentity | None) -> None:
    """Raise ForeignChunk if a chunk that says this of itself is not of `game` or lacks fields of `form`."""
    difference = "" if game is None else game.difference(meta.game)
    if difference:
        raise ForeignChunk(f"{path}: rows of another game: {difference}")
    if form is not None and not meta.form.holds(form):
        odd = next(name for name, field in form.fields.items() if meta.form.fields.get(name) != field)
        raise ForeignChunk(f"{path}: rows of another kind: they have no {odd} of the shape that is wanted")
