"""Chunks: files of many rows, whole games only (docs/data.md).

Everything is checked before it is used, because files are cut short, mixed up and written by other programs. Files of
KataGo (format/katago.py) and Lc0 (format/lc0.py) are read as chunks, too.
"""

import contextlib
import dataclasses
import io
import itertools
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from tengen import files, schema
from tengen.data.format import katago, sanity
from tengen.data.format import rows as row
from tengen.data.format.archive import DEFLATE_LIMIT, HEADER_LIMIT, Archive, peek
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat, Rows
from tengen.errors import OptionError, TengenError
from tengen.schema import REQUIRED, setting

SCHEMA = 1
_LC0 = ".gz"  # the ending of Lc0's games
_META = "meta"
_META_LIMIT = 1 << 20  # bytes; what is larger is no meta of ours
_SAMPLE = 1 << 16  # bytes
_WORTHWHILE, _SPARSE = 0.65, 0.15  # fields of which a sample shrinks to that share are compressed


class ChunkError(TengenError):
    """A file that cannot be used as a chunk: which, and why."""


class CorruptChunk(ChunkError):
    """Its content is not what was written."""


class ForeignChunk(ChunkError):
    """It is good, but of another game or format, without a wanted field, or larger than allowed."""


class UnreadableChunk(ChunkError):
    """It does not exist, may not be read, or is no regular file; its content is unknown."""


@dataclass(frozen=True)
class Meta:
    """The description of a chunk in its `meta`."""

    game: GameIdentity
    form: RowFormat
    network: str  # which played the games
    rows: int
    games: int  # 0 for a file of KataGo of which only the headers were read
    more: Mapping[str, Any] = field(default_factory=dict)  # other notes of the writer, in JSON values
    left_out: int = 0  # further rows, of KataGo's games on boards larger than the one that is wanted
    reading_bytes: int = 0  # needed besides the rows to read a file of KataGo, whose rows have another form

    @property
    def memory_bytes(self) -> int:
        """Bytes in memory of the rows, with all fields, and of what is needed to read them."""
        return self.rows * self.form.row_bytes + self.reading_bytes

    def left_out_words(self, path: Path) -> str:
        """A message about rows that are left out; empty if there are none."""
        side, total = self.form.planes_shape[0], self.rows + self.left_out
        words = f"{path}: {self.left_out:,} of {total:,} rows are of boards larger than {side}x{side}, and left out"
        return words if self.left_out else ""

    def to_dict(self) -> dict[str, Any]:
        own = {"schema": SCHEMA, "network": self.network, "rows": self.rows, "games": self.games}
        return {**own, "format": self.form.to_dict(), **self.game.to_dict(), **self.more}

    @staticmethod
    def from_json(text: bytes) -> "Meta":
        """Undo `to_dict`, as JSON. Raises OptionError."""
        data = json.loads(text)
        found = schema.from_data(_Counts, data, "meta")
        form, game = _described(json.dumps({key: data[key] for key in _DESCRIBED if key in data}))
        more = {key: value for key, value in data.items() if key not in _OURS}
        return Meta(game, form, found.network, found.rows, found.games, more)


@dataclass(frozen=True)
class _Counts:
    schema: Literal[1]
    network: str
    rows: int = setting(REQUIRED, low=0)
    games: int = setting(REQUIRED, low=0)


_DESCRIBED = ("format", "game", "version", "options")
_OURS = (*_DESCRIBED, *(field.name for field in dataclasses.fields(_Counts)))


@lru_cache(maxsize=64)
def _described(text: str) -> tuple[RowFormat, GameIdentity]:
    """Format and game, which are the same in all chunks of a run."""
    data = json.loads(text)
    form = schema.from_data(RowFormat, data.get("format"), "meta: format")
    return row.interned(form), GameIdentity.from_dict(data, "meta")


def write_chunk(
    path: Path,
    form: RowFormat,
    rows: Mapping[str, Any],
    game: GameIdentity,
    *,
    network: str,
    more: Mapping[str, Any] | None = None,
    compress: bool | None = None,
) -> Meta:
    """Write rows (np, or jnp, which is fetched here) to a file that is complete or absent.

    OptionError if the rows do not match `form` or are impossible; TengenError if the file cannot be written.
    """
    host = {name: np.asarray(values) for name, values in rows.items()}
    count = row.check(form, host)
    wrong = list(sanity.problems(form, host))
    if wrong:
        raise OptionError(f"{path}: not written, these rows cannot be right: {'; '.join(wrong)}")
    taken = sorted(set(more or {}) & set(_OURS))
    if taken:
        raise ValueError(f"a chunk has a {taken[0]} of its own, choose another name")
    meta = Meta(game, form, network, count, row.count_games(host["game"]), dict(more or {}))
    file = io.BytesIO()
    pack(file, meta, ((name, host[name]) for name in form.fields), compress=compress)
    files.make_folder(path.parent)
    files.write_bytes(path, file.getvalue())
    return meta


def read_meta(
    path: Path,
    form: RowFormat | None = None,
    game: GameIdentity | None = None,
    limit: int | None = None,
    *,
    count: bool = False,
) -> Meta:
    """The description of a chunk, without its rows. Raises ChunkError, also for chunks that `read_chunk` does not want.

    With `count`, games in files of KataGo are counted, too, for which one of their arrays is unpacked. With `form`, the
    rows are those that `read_chunk` gives, for which another one may be. Everything else is checked before that.
    """
    if path.suffix == _LC0:
        return _of_lc0(path, form, game, limit)
    with explaining(path), files.open_regular(path) as file:
        archive = Archive(file)
        meta = _read_meta(archive, path, form, game, limit)
        if count and katago.is_katago(archive):
            meta = dataclasses.replace(meta, games=katago.count_games(archive, meta.rows))
        if form is not None and katago.is_katago(archive):
            meta = _kept(path, meta, katago.count_fitting(archive, meta.rows, meta.form))
        return meta


def peek_meta(path: Path) -> Meta:
    """The same as `read_meta` with `count`, in a third of the time, for callers that read thousands of chunks.

    Only the two ends of the file are read: `meta` is the first array, and the list of arrays must end where the file
    does. `read_meta` reads everything that is not exactly as `pack` writes it.
    """
    try:
        size, text = peek(path, _META)
        meta = Meta.from_json(text)
        if meta.rows * meta.form.row_bytes <= size * DEFLATE_LIMIT:
            return meta
    except (OSError, ValueError):
        pass
    return read_meta(path, count=True)


def read_chunk(
    path: Path, form: RowFormat | None = None, game: GameIdentity | None = None, limit: int | None = None
) -> tuple[Rows, Meta]:
    """The rows (np, read-only) with the fields of `form`, or all of them, fully checked.

    Raises CorruptChunk, UnreadableChunk, or ForeignChunk if the chunk is not of `game`, lacks fields of `form`, or has
    more than `limit` rows. Nothing is unpacked before all of that and the sizes of all arrays are checked.
    """
    if path.suffix == _LC0:
        from tengen.data.format import lc0  # here, because it needs JAX

        meta = _of_lc0(path, form, game, limit)
        rows = lc0.reader(form or meta.form)(path)
        return rows, dataclasses.replace(meta, rows=len(rows["ply"]))
    with explaining(path), files.open_regular(path) as file:
        archive = Archive(file)
        meta = _read_meta(archive, path, form, game, limit)
        foreign = katago.is_katago(archive)
        if foreign:
            rows = katago.read(archive, meta.rows, meta.form)
        else:
            fields = meta.form.fields.items()
            rows = {name: archive.read(name, (meta.rows, *shape), dtype) for name, (shape, dtype) in fields}
        if not foreign and (wrong := list(sanity.problems(meta.form, rows))):
            raise OptionError("; ".join(wrong))
        games = row.count_games(rows["game"])
        if foreign:
            meta = dataclasses.replace(_kept(path, meta, len(rows["ply"])), games=games)
        elif games != meta.games:
            raise OptionError(f"game: expected {meta.games} different games, got {games}")
        wanted = meta.form.fields if form is None else form.fields
        missing = {name: np.ones(meta.rows, np.float32) for name in row.TARGET_WEIGHTS if name not in rows}
        return {name: (rows | missing)[name] for name in wanted}, meta


def pack(
    file: IO[bytes], meta: Meta, fields: Iterable[tuple[str, np.ndarray]], *, compress: bool | None = None
) -> None:
    """Write a chunk into an open file; `fields` come in the order of the row format, and are taken one at a time.

    With `compress` None, fields are compressed quickly if that is worthwhile, because a GPU may play tens of gigabytes
    of rows in an hour. Even without `compress`, those that are nearly all zeros are, such as the policies of chess:
    that is faster than writing them.
    """
    text = np.frombuffer(json.dumps(meta.to_dict(), allow_nan=False).encode(), np.uint8)
    share = _WORTHWHILE if compress is None else _SPARSE
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        for name, values in itertools.chain([(_META, text)], fields):
            # A fixed date: the same rows give the same bytes.
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = archive.compression
            values = np.ascontiguousarray(values)
            data = values.reshape(-1).view(np.uint8)
            header = np.lib.format.header_data_from_array_1_0(values)
            if not compress and _shrinks(data, share):
                whole = io.BytesIO()
                np.lib.format.write_array_header_1_0(whole, header)
                whole.write(data.data)
                archive.writestr(info, whole.getbuffer(), zipfile.ZIP_DEFLATED, compresslevel=1)
                continue
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, header)
                member.write(data.data)


def _shrinks(data: np.ndarray, share: float) -> bool:
    """Whether compressing shrinks these bytes below that share, by a sample from their middle."""
    begin = (len(data) - _SAMPLE) // 2
    return begin >= 0 and len(zlib.compress(data[begin : begin + _SAMPLE].data, 1)) < share * _SAMPLE


@contextlib.contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Around reading a file: every failure becomes a ChunkError."""
    try:
        yield
    except ChunkError:
        raise
    except katago.OtherRows as error:
        raise ForeignChunk(f"{path}: rows of KataGo that cannot be used: {error}") from error
    except OSError as error:  # also for what is no regular file
        raise UnreadableChunk(f"{path}: cannot be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise UnreadableChunk(f"{path}: cannot be read: not enough memory") from error
    except (ValueError, RecursionError) as error:  # OptionError and JSON's errors are ValueErrors
        raise CorruptChunk(f"{path}: not a good chunk: {error}") from error


def _of_lc0(path: Path, *wanted: Any) -> Meta:
    """The description of a game in Lc0's format, checked by `check_wanted`. Raises ChunkError."""
    from tengen.data.format import lc0  # here, because it needs JAX

    game = GameIdentity("chess", 0, {"chess960": False}, partial=True)
    meta = Meta(game, lc0.FORM, katago.network_of(path), lc0.count_positions(path), 1)
    check_wanted(path, meta, *wanted)
    return meta


def _read_meta(archive: Archive, path: Path, form: RowFormat | None, *wanted: Any) -> Meta:
    """The description of a chunk, after checking that there is one array of the right size for each field.

    Files of KataGo are described with boards no larger than those of the format that is wanted.
    """
    if katago.is_katago(archive):
        rows, own, game = katago.describe(archive, form.planes_shape[0] if form else None)
        size = katago.reading_bytes(archive, rows)
        meta = Meta(game, row.interned(own), katago.network_of(path), rows, 0, reading_bytes=size)
    else:
        meta = Meta.from_json(archive.read_text(_META, _META_LIMIT))
        sizes = archive.sizes
        expected = {f"{name}.npy" for name in (_META, *meta.form.fields)}
        if sizes.keys() != expected:
            odd = min(sizes.keys() ^ expected)
            raise OptionError(f"expected one array per field, but {odd} is missing or too many")
        for name, each in meta.form.field_bytes.items():
            size = meta.rows * each
            if not size < sizes[f"{name}.npy"] <= size + HEADER_LIMIT:
                raise OptionError(f"{name}: expected {size} bytes for {meta.rows} rows")
    check_wanted(path, meta, form, *wanted)
    return meta


def _kept(path: Path, meta: Meta, rows: int) -> Meta:
    """The description of a file of KataGo of which that many rows fit on the board. ForeignChunk if none do."""
    kept = dataclasses.replace(meta, rows=rows, left_out=meta.rows - rows)
    if meta.rows and not rows:
        raise ForeignChunk(kept.left_out_words(path))
    return kept


def check_wanted(
    path: Path, meta: Meta, form: RowFormat | None, game: GameIdentity | None, limit: int | None = None
) -> None:
    """Raise ForeignChunk if a chunk is not of `game`, lacks fields of `form`, or has more rows than the limit."""
    if limit is not None and meta.rows > limit:
        raise ForeignChunk(
            f"{path}: has {meta.rows:,} rows, and data.max_chunk_rows allows {limit:,} in a file; raise that if the "
            "file is meant to be this large"
        )
    difference = "" if game is None else game.difference(meta.game)
    if difference:
        of_katago = meta.game.partial and path.suffix != _LC0
        advice = (
            "; rows of KataGo need game.observation=katago and a board at most as large as theirs (dataBoardLen)"
            if of_katago
            else ""
        )
        raise ForeignChunk(f"{path}: rows of another game: {difference}{advice}")
    odd = None if form is None else meta.form.lacking(form)
    if odd is not None:
        raise ForeignChunk(f"{path}: rows of another kind: they have no {odd} of the shape that is wanted")
