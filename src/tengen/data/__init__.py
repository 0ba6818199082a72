"""What is learnt from: rows, in chunks on disk and in a ring on the device, and the records of games.

    form = data.RowFormat.of(game, heads)
    store = data.Store(run / "selfplay", worker="a")
    with data.Writer() as writer:
        path = store.reserve("net-s0-d0")
        writer.put(partial(data.write_chunk, path, form, rows, data.GameIdentity.of(game), network="net-s0-d0"), path)

    with data.Loader(data.Folder(run / "selfplay"), form, data.GameIdentity.of(game), settings) as loader:
        batch = loader.get_next_batch("train")     # a tuple of arrays, see docs/loader.md

    ring = data.ring.make(form, capacity)          # functions of a device buffer: append, sample, newest

Settings need no JAX, which is imported when something else is asked for. See docs/data.md.
"""

from typing import TYPE_CHECKING

from tengen import late
from tengen.data.settings import LoaderSettings, WindowSettings
from tengen.data.window import power_law

if TYPE_CHECKING:
    from tengen.data import ring
    from tengen.data.channels import StageFailed
    from tengen.data.chunk import (
        ChunkError,
        CorruptChunk,
        ForeignChunk,
        Meta,
        UnreadableChunk,
        read_chunk,
        read_meta,
        write_chunk,
    )
    from tengen.data.identity import GameIdentity
    from tengen.data.loader import Loader, LoaderClosed, LoaderStats, LoaderTimeout
    from tengen.data.records import Record, RecordError, load_records, save_records
    from tengen.data.rows import RowFormat, blank, check, pack_planes, unpack_planes
    from tengen.data.sources import FileList, Folder
    from tengen.data.store import Chunk, Listing, Loaded, Store
    from tengen.data.writer import Writer

__all__ = [
    "Chunk",
    "ChunkError",
    "CorruptChunk",
    "FileList",
    "Folder",
    "ForeignChunk",
    "GameIdentity",
    "Listing",
    "Loaded",
    "Loader",
    "LoaderClosed",
    "LoaderSettings",
    "LoaderStats",
    "LoaderTimeout",
    "Meta",
    "Record",
    "RecordError",
    "RowFormat",
    "StageFailed",
    "Store",
    "UnreadableChunk",
    "WindowSettings",
    "Writer",
    "blank",
    "check",
    "load_records",
    "pack_planes",
    "power_law",
    "read_chunk",
    "read_meta",
    "ring",
    "save_records",
    "unpack_planes",
    "write_chunk",
]

_LATE = {
    "chunk": (
        "ChunkError",
        "CorruptChunk",
        "ForeignChunk",
        "Meta",
        "UnreadableChunk",
        "read_chunk",
        "read_meta",
        "write_chunk",
    ),
    "channels": ("StageFailed",),
    "identity": ("GameIdentity",),
    "loader": ("Loader", "LoaderClosed", "LoaderStats", "LoaderTimeout"),
    "records": ("Record", "RecordError", "load_records", "save_records"),
    "rows": ("RowFormat", "blank", "check", "pack_planes", "unpack_planes"),
    "sources": ("FileList", "Folder"),
    "store": ("Chunk", "Listing", "Loaded", "Store"),
    "writer": ("Writer",),
}

__getattr__ = late.names(__name__, _LATE, modules=("ring",))
