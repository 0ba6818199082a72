"""Zips that lie about themselves are refused before they cost anything; those of other programs are read."""

import contextlib
import json
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen import files
from tengen.data.format import archive, chunk
from tengen.data.format.archive import Archive
from tengen.data.format.chunk import CorruptChunk, ForeignChunk, read_chunk, read_meta, write_chunk
from tengen.data.format.rows import blank
from tengen.errors import OptionError
from tests.helpers import rows as made

COUNT = 12


def arrays(count: int = COUNT, **meta: Any) -> dict[str, Any]:
    """The arrays of a good chunk, whose meta says what is given."""
    about = {
        "schema": 1,
        "network": "n",
        "rows": count,
        "games": -(-count // 4),
        "format": made.FORM.to_dict(),
        **made.GAME.to_dict(),
        **meta,
    }
    return {"meta": np.frombuffer(json.dumps(about).encode(), np.uint8), **made.rows(count)}


def zipped(path: Path, method: int, content: dict[str, Any] | None = None, **options: Any) -> Path:
    """A chunk by Python's zipfile."""
    with zipfile.ZipFile(path, "w", method, **options) as into:
        for name, values in (content or arrays()).items():
            with into.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, values)
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_numpy_wrote_it(tmp_path: Path, save: Callable[..., None]) -> None:
    save(tmp_path / "a.npz", **arrays())
    rows, meta = read_chunk(tmp_path / "a.npz", made.FORM, made.GAME)
    assert made.same(rows, made.rows(COUNT))
    assert meta == read_meta(tmp_path / "a.npz")
    assert not rows["ply"].flags.writeable


def test_a_comment_and_data_descriptors(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"

    class Pipe:
        """Cannot be sought in, so that sizes follow the data."""

        def __init__(self, file: Any) -> None:
            self.write, self.flush = file.write, file.flush

    with path.open("wb") as file, zipfile.ZipFile(Pipe(file), "w", zipfile.ZIP_DEFLATED) as into:  # type: ignore[arg-type]
        for name, values in arrays().items():
            with into.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, values)
        into.comment = b"by hand" * 1000
    assert made.same(read_chunk(path)[0], made.rows(COUNT))


def test_headers_of_other_programs(tmp_path: Path) -> None:
    """The same in other words: order, spaces and quotes are free."""
    path = tmp_path / "a.npz"
    rows = arrays()
    with zipfile.ZipFile(path, "w") as into:
        for name, values in rows.items():
            sizes = ",".join(map(str, values.shape)) + ("," if values.ndim == 1 else "")
            header = f'{{"shape":({sizes}), "descr": "{values.dtype.str}","fortran_order":False}}\n'.encode()
            into.writestr(
                f"{name}.npy", b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + values.tobytes()
            )
    assert made.same(read_chunk(path)[0], made.rows(COUNT))


def test_a_large_file_in_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above 4 GB other numbers count. Python's zipfile is told that 100 bytes are too many for the usual ones."""
    path = tmp_path / "a.npz"
    with monkeypatch.context() as patch:
        patch.setattr(zipfile, "ZIP64_LIMIT", 100)
        write_chunk(path, made.FORM, made.rows(COUNT), made.GAME, network="n")
    assert b"PK\x06\x06" in path.read_bytes()
    assert made.same(read_chunk(path)[0], made.rows(COUNT))


@pytest.mark.parametrize(
    ("method", "name"), [(zipfile.ZIP_BZIP2, "bzip2"), (zipfile.ZIP_LZMA, "LZMA")], ids=["bzip2", "lzma"]
)
def test_other_methods(tmp_path: Path, method: int, name: str) -> None:
    path = zipped(tmp_path / "a.npz", method)
    for read in (read_chunk, read_meta):
        with pytest.raises(CorruptChunk, match=f"expected it stored or deflated, got {name}"):
            read(path)


def peak(read: Callable[[], Any], error: type[Exception], match: str) -> int:
    """Bytes that were allocated at the most while something was refused."""
    tracemalloc.start()
    try:
        with pytest.raises(error, match=match):
            read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bomb(path: Path, count: int) -> Path:
    """A good chunk of that many rows, all the same, which is small."""
    rows = blank(made.FORM, count)
    rows["outcome"][:, 0] = 1
    rows["opponent_policy"][:, 0] = 1
    write_chunk(path, made.FORM, rows, made.GAME, network="n", compress=True)
    return path


def test_too_many_rows_are_not_unpacked(tmp_path: Path) -> None:
    path = bomb(tmp_path / "a.npz", 200_000)
    unpacked = 200_000 * made.FORM.row_bytes
    assert path.stat().st_size < unpacked / 100
    used = peak(
        lambda: read_chunk(path, made.FORM, made.GAME, 199_999), ForeignChunk, r"data\.max_chunk_rows allows 199,999"
    )
    assert used < 200_000
    assert len(read_chunk(path, made.FORM, made.GAME, 200_000)[0]["ply"]) == 200_000


def test_reading_takes_little_more_than_the_rows(tmp_path: Path) -> None:
    path = bomb(tmp_path / "a.npz", 200_000)
    tracemalloc.start()
    try:
        read_chunk(path)
        assert tracemalloc.get_traced_memory()[1] < 1.5 * 200_000 * made.FORM.row_bytes + 8 * 2**20
    finally:
        tracemalloc.stop()


def patched(path: Path, name: str, offset: int, value: int) -> None:
    """Change a number of 32 bits in the list of members, where it describes `name`."""
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(name.encode()))
    struct.pack_into("<I", data, at + offset, value)
    path.write_bytes(data)


@pytest.mark.parametrize("compress", [False, True])
def test_a_size_that_cannot_be(tmp_path: Path, compress: bool) -> None:
    """A few kilobytes say that they are gigabytes, in the list of members and in their own meta."""
    path = tmp_path / "a.npz"
    zipped(path, zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED, arrays(rows=10**8))
    patched(path, "planes.npy", 24, 6 * 10**8)  # the size once unpacked
    for read in (read_chunk, read_meta):
        assert (
            peak(lambda read=read: read(path), CorruptChunk, "planes.npy: .* bytes cannot unpack to 600000000")
            < 200_000
        )


def test_more_rows_than_there_are_bytes(tmp_path: Path) -> None:
    zipped(tmp_path / "a.npz", zipfile.ZIP_DEFLATED, arrays(rows=10**12))
    for read in (read_chunk, read_meta):
        assert peak(lambda read=read: read(tmp_path / "a.npz"), CorruptChunk, "bytes for 1000000000000 rows") < 200_000


def test_a_header_that_counts_to_the_sky(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as into:
        for name, values in arrays().items():
            shape = (10**15, *values.shape[1:]) if name == "score" else values.shape
            header = str({"descr": values.dtype.str, "fortran_order": False, "shape": shape}).encode() + b"\n"
            into.writestr(
                f"{name}.npy", b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + values.tobytes()
            )
    assert (
        peak(lambda: read_chunk(path), CorruptChunk, r"score: expected float32 \[12\], got float32 \[10{15}\]") < 2**18
    )


def test_more_comes_out_than_was_announced(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.npz", zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(path) as found:
        info = found.getinfo("planes.npy")
        content = found.read(info)
    patched(path, "planes.npy", 24, info.file_size - 10)
    patched(path, "planes.npy", 16, zlib.crc32(content[:-10]))
    with pytest.raises(CorruptChunk, match="planes"):
        read_chunk(path)
    with files.open_regular(path) as file, pytest.raises(OptionError, match="expected 72 bytes of numbers, got 62"):
        Archive(file).read("planes", (12, 6), np.dtype(np.uint8))
    with files.open_regular(path) as file, pytest.raises(OptionError, match="unpacks to more than the"):
        Archive(file).read_text("planes", 1000)


def test_a_wrong_checksum_and_a_cut_member(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path = zipped(tmp_path / "a.npz", method)
        patched(path, "score.npy", 16, 1234)
        with pytest.raises(CorruptChunk, match=r"score\.npy: its checksum is wrong"):
            read_chunk(path)
    path = zipped(tmp_path / "a.npz", zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(path) as found:
        stored = found.getinfo("score.npy").compress_size
    patched(path, "score.npy", 20, stored - 12)
    with pytest.raises(CorruptChunk, match=r"score\.npy: (is cut short|cannot be unpacked)"):
        read_chunk(path)


def test_members_in_one_another(tmp_path: Path) -> None:
    """Many names for the same bytes: each is small, and all of them together are much."""
    path = zipped(tmp_path / "a.npz", zipfile.ZIP_STORED)
    with zipfile.ZipFile(path) as found:
        place = found.getinfo("planes.npy").header_offset
    patched(path, "scalars.npy", 42, place)
    for read in (read_chunk, read_meta):
        with pytest.raises(CorruptChunk, match="overlaps with what follows it"):
            read(path)


def test_a_hole_as_large_as_a_disk(tmp_path: Path) -> None:
    """A file that takes no room, and says that all of it is the list of its members."""
    path = tmp_path / "a.npz"
    with path.open("wb") as file:
        file.truncate(2**32 - 100)
        file.seek(0, 2)
        file.write(struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 15, 15, 2**32 - 100, 0, 0))
    for read in (read_chunk, read_meta):
        assert peak(lambda read=read: read(path), CorruptChunk, "a header of 4,294,967,196 bytes") < 200_000


def test_encrypted_and_python_objects(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.npz", zipfile.ZIP_STORED)
    patched(path, "score.npy", 8, 1)
    with pytest.raises(CorruptChunk, match=r"score\.npy: is encrypted"):
        read_chunk(path)
    for kind in ("|O", "|V8", "<U4", "<M8[s]"):
        content = arrays()
        values = content.pop("score")
        zipped(path, zipfile.ZIP_STORED, content)
        header = str({"descr": kind, "fortran_order": False, "shape": (12,)}).encode() + b"\n"
        with zipfile.ZipFile(path, "a") as into:
            into.writestr("score.npy", b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + values.tobytes())
        with pytest.raises(CorruptChunk, match="score: expected the .npy header of plain numbers"):
            read_chunk(path)


def test_random_damage_is_always_told(tmp_path: Path) -> None:
    """Whatever byte is wrong: the same rows, or an error of ours."""
    path = zipped(tmp_path / "a.npz", zipfile.ZIP_DEFLATED)
    good, draw = path.read_bytes(), np.random.default_rng(1)
    for _ in range(300):
        damaged = bytearray(good)
        for place in draw.integers(0, len(good), draw.integers(1, 4)):
            damaged[place] = draw.integers(256)
        path.write_bytes(damaged)
        with contextlib.suppress(chunk.ChunkError):
            assert made.same(read_chunk(path)[0], made.rows(COUNT))


def test_pieces_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for compress in (False, True):
        write_chunk(tmp_path / "a.npz", made.FORM, made.rows(500), made.GAME, network="n", compress=compress)
        for size in (1, 7, 4096):
            monkeypatch.setattr(archive, "_BLOCK", size)
            assert made.same(read_chunk(tmp_path / "a.npz")[0], made.rows(500))
