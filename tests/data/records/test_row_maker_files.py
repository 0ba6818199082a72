"""Files of games as chunks: which are read, what is skipped, and what is left behind if something goes wrong."""

import os
from pathlib import Path

import pytest

from tengen import games
from tengen.data.format.chunk import read_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.records.records import Record, RecordError, read_each, save_records
from tengen.data.records.row_maker import from_games
from tengen.errors import TengenError

GAME = games.make("tic_tac_toe")
FORM = RowFormat.of(GAME)


def records(path: Path, count: int) -> Path:
    save_records(path, [Record.of(GAME, (0, 3, 1, 4, 2), result=1.0)] * count)
    return path


def test_chunks_appear_beside_those_that_are_there(tmp_path: Path) -> None:
    said: list[str] = []
    files = [records(tmp_path / "one.txt", 3), records(tmp_path / "two.txt", 2)]
    found = from_games(files, tmp_path / "selfplay", GAME, FORM, tell=said.append)
    (path,) = (tmp_path / "selfplay" / "games").iterdir()
    assert path.name == "0000000000-games.npz"
    rows, meta = read_chunk(path, FORM, GameIdentity.of(GAME))
    assert (meta.rows, meta.games, meta.network, found.rows, found.games) == (25, 5, "games", 25, 5)
    assert len(rows["ply"]) == 25
    again = from_games(files[:1], tmp_path / "selfplay", GAME, FORM)
    assert [path.name for path in again.folder.iterdir()] == ["0000000001-games.npz"]
    assert again.folder.name == "games-2"
    assert said == [f"{files[0]}: 0 rows so far", f"{files[1]}: 0 rows so far"], "replayed together, at the end"
    assert str(again) == f"{again.folder}: 15 rows of 3 games in 1 file"


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "garbage.sgf").write_bytes(b"\x00\xff garbage")
    found = from_games([records(tmp_path / "one.txt", 1), tmp_path / "garbage.sgf"], tmp_path / "out", GAME, FORM)
    assert "skipped 1: cannot be read (such as" in str(found)
    assert "garbage.sgf, game 1: the file is neither SGF" in str(found)


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "empty.sgf").touch()
    with pytest.raises(TengenError, match="no game can be used\nskipped 1: cannot be read"):
        from_games([tmp_path / "empty.sgf"], out, GAME, FORM)
    os.mkfifo(tmp_path / "fifo")
    for name in ("fifo", "none.sgf", "."):
        with pytest.raises(TengenError, match=f"{tmp_path / name}: "):
            from_games([records(tmp_path / "one.txt", 1), tmp_path / name], out, GAME, FORM)
    assert not out.exists() or list(out.iterdir()) == []


def test_many_games_one_per_line(tmp_path: Path) -> None:
    """A line that is cut short costs its own game only."""
    path = tmp_path / "many.sgfs"
    path.write_text("(;SZ[3]RE[B+R];B[aa])\n(;SZ[3]RE[W+R];B[b\n(;SZ[3]RE[W+1.5];B[bb](;W[cc])(;W[aa]))\n")
    first, second, third = read_each(path)
    assert isinstance(second, RecordError)
    assert (first.actions, third.actions, third.score) == ((0,), (4, 8), -1.5)
    whole = tmp_path / "many.sgf"
    whole.write_text("(;SZ[3]RE[B+R];B[aa])\n(;SZ[99];B[aa])(;SZ[3]RE[W+R];B[bb])\n(;SZ[3];B[aa]")
    kinds = [type(each).__name__ for each in read_each(whole)]
    assert kinds == ["Record", "RecordError", "Record", "RecordError"]
