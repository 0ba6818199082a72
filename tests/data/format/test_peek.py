"""A glance at a chunk gives what reading it would give, and the same errors."""

from pathlib import Path

import pytest

from tengen.data.format import chunk, peek
from tengen.data.format.chunk import write_chunk
from tests.helpers import rows


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("count", [0, 1, 50])
def test_the_same_as_reading(tmp_path: Path, compress: bool, count: int) -> None:
    path = tmp_path / "a.npz"
    more = {"finished": 12, "note": "ü" * 100}
    wrote = write_chunk(path, rows.FORM, rows.rows(count), rows.GAME, network="n", more=more, compress=compress)
    assert peek.read_meta(path) == chunk.read_meta(path) == wrote


def test_it_is_a_glance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    wrote = write_chunk(path, rows.FORM, rows.rows(5), rows.GAME, network="n")
    monkeypatch.delattr(chunk, "read_meta")
    assert peek.read_meta(path) == wrote


def outcome(read: object, path: Path) -> object:
    try:
        return read(path)  # type: ignore[operator]
    except chunk.ChunkError as error:
        return type(error), str(error)


def test_damage_is_told_as_by_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_chunk(path, rows.FORM, rows.rows(3), rows.GAME, network="n")
    good = path.read_bytes()
    for place in [*range(0, 900, 7), len(good) - 30, len(good) - 1]:
        path.write_bytes(good[:place])
        assert outcome(peek.read_meta, path) == outcome(chunk.read_meta, path)
    for place in range(0, 600, 11):
        damaged = bytearray(good)
        damaged[place] ^= 255
        path.write_bytes(damaged)
        assert outcome(peek.read_meta, path) == outcome(chunk.read_meta, path)
    assert outcome(peek.read_meta, tmp_path / "none.npz")[0] is chunk.UnreadableChunk  # type: ignore[index]
