"""Chunks: what is written is read, and nothing else is."""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen import games
from tengen.data.format import chunk
from tengen.data.format.chunk import (
    ChunkError,
    CorruptChunk,
    ForeignChunk,
    UnreadableChunk,
    peek_meta,
    read_chunk,
    read_meta,
    write_chunk,
)
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.errors import OptionError, TengenError
from tests.helpers import paths, rows
from tests.helpers import rows as made


def write(path: Path, count: int = 12, **options: Any) -> None:
    write_chunk(path, made.FORM, made.rows(count), made.GAME, network="net-s1-d2", **options)


def npz(path: Path, arrays: dict[str, Any]) -> None:
    """A file by NumPy's own hand, which pickles what it cannot write otherwise."""
    np.savez(path, **arrays)


def parts(count: int = 12) -> dict[str, Any]:
    """The arrays of a good chunk."""
    meta = {
        "schema": 1,
        "network": "n",
        "rows": count,
        "games": -(-count // 4),
        "format": made.FORM.to_dict(),
        **made.GAME.to_dict(),
    }
    return {"meta": as_bytes(meta), **made.rows(count)}


def as_bytes(value: object) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("count", [0, 1, 12, 1000])
def test_round_trip(tmp_path: Path, compress: bool, count: int) -> None:
    path = tmp_path / "new" / "folder" / "x.npz"
    write(path, count, compress=compress, more={"first_game": 7})
    rows, meta = read_chunk(path, made.FORM, made.GAME)
    assert made.same(rows, made.rows(count))
    assert (meta.rows, meta.games, meta.network) == (count, -(-count // 4), "net-s1-d2")
    assert (meta.game, meta.form, meta.more) == (made.GAME, made.FORM, {"first_game": 7})
    assert read_meta(path) == meta
    assert [file.name for file in path.parent.iterdir()] == ["x.npz"]


@given(st.integers(0, 40), st.integers(0, 2**32 - 1), st.booleans())
def test_any_rows_round_trip(tmp_path_factory: pytest.TempPathFactory, count: int, seed: int, compress: bool) -> None:
    path = tmp_path_factory.mktemp("chunk") / "x.npz"
    rows = made.rows(count, seed)
    write_chunk(path, made.FORM, rows, made.GAME, network="n", compress=compress)
    assert made.same(read_chunk(path)[0], rows)


def test_rows_from_the_device_and_from_slices(tmp_path: Path) -> None:
    rows = made.rows(20)
    write_chunk(tmp_path / "a", made.FORM, {k: jnp.asarray(v) for k, v in rows.items()}, made.GAME, network="n")
    write_chunk(tmp_path / "b", made.FORM, {k: v[::-1][::-1] for k, v in rows.items()}, made.GAME, network="n")
    assert made.same(read_chunk(tmp_path / "a")[0], rows)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_numpy_reads_it(tmp_path: Path) -> None:
    write(tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz", allow_pickle=False) as file:
        assert set(file) == {"meta", *made.FORM.fields}
        assert json.loads(bytes(file["meta"]))["rows"] == 12
        assert made.same({name: file[name] for name in made.FORM.fields}, made.rows(12))


def test_a_chunk_that_numpy_wrote(tmp_path: Path) -> None:
    npz(tmp_path / "x.npz", parts())
    assert made.same(read_chunk(tmp_path / "x.npz", made.FORM, made.GAME)[0], made.rows(12))


def test_fewer_fields_can_be_asked_for(tmp_path: Path) -> None:
    write(tmp_path / "x.npz")
    rows, _ = read_chunk(tmp_path / "x.npz", made.PLAIN, made.GAME)
    assert made.same(rows, {name: made.rows(12)[name] for name in made.PLAIN.fields})


def test_other_games_and_formats_are_foreign(tmp_path: Path) -> None:
    write(tmp_path / "x.npz")
    with pytest.raises(ForeignChunk, match=r"x\.npz.*komi: expected 6\.5, got 7\.0"):
        read_chunk(tmp_path / "x.npz", made.FORM, made.ELSE)
    with pytest.raises(ForeignChunk, match="expected the game hex, got go"):
        read_chunk(tmp_path / "x.npz", made.FORM, GameIdentity("hex", 1, {}))
    with pytest.raises(ForeignChunk, match="expected version 2 of the rules of go, got 1"):
        read_chunk(tmp_path / "x.npz", made.FORM, GameIdentity("go", 2, made.GAME.options))
    write_chunk(tmp_path / "y.npz", made.PLAIN, made.rows(3, form=made.PLAIN), made.GAME, network="n")
    with pytest.raises(ForeignChunk, match="have no opponent_policy"):
        read_chunk(tmp_path / "y.npz", made.FORM, made.GAME)


@pytest.mark.parametrize("name", games.names())
def test_identity_of_games(name: str) -> None:
    game = games.make(name)
    identity = GameIdentity.of(game)
    again = GameIdentity.from_dict(json.loads(json.dumps(identity.to_dict())))
    assert again == identity
    assert identity.difference(again) == ""
    assert games.make(name, **identity.options).options == game.options


def test_an_option_that_is_newer_than_the_data() -> None:
    plain, katago = (GameIdentity.of(games.make("go", observation=which)) for which in ("tengen", "katago"))
    older = GameIdentity("go", 1, {name: value for name, value in plain.options.items() if name != "observation"})
    assert plain.difference(older) == older.difference(plain) == ""
    assert katago.difference(older) == 'go: observation: expected "katago", got "tengen"'


def test_what_cannot_be_true_is_not_written(tmp_path: Path) -> None:
    rows = made.rows(4)
    rows["search_value"][2] = np.nan
    with pytest.raises(OptionError, match="not written, .*search_value: .* 1 of 4 rows"):
        write_chunk(tmp_path / "x.npz", made.FORM, rows, made.GAME, network="n")
    with pytest.raises(OptionError, match="opponent_policy is missing"):
        write_chunk(tmp_path / "x.npz", made.FORM, made.rows(4, form=made.PLAIN), made.GAME, network="n")
    assert list(tmp_path.iterdir()) == []


def test_own_notes_do_not_hide_ours(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a chunk has a rows of its own"):
        write(tmp_path / "x.npz", more={"rows": 3})


def places(size: int) -> list[int]:
    """Every byte near the ends, where the zip keeps its tables, and some of every kind in between."""
    return [*range(min(size, 120)), *range(120, size - 160, 17), *range(max(size - 160, 120), size)]


@pytest.mark.parametrize("compress", [False, True])
def test_cut_short_anywhere(tmp_path: Path, compress: bool) -> None:
    path = tmp_path / "x.npz"
    write(path, 3, compress=compress)
    whole = path.read_bytes()
    for length in places(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CorruptChunk, match=r"x\.npz: not a good chunk: ."):
            read_chunk(path)


@pytest.mark.parametrize("compress", [False, True])
def test_changed_anywhere(tmp_path: Path, compress: bool) -> None:
    """Every byte of the numbers is covered by a checksum; others may be of no consequence (dates, say)."""
    path = tmp_path / "x.npz"
    write(path, 3, compress=compress)
    whole, good = path.read_bytes(), made.rows(3)
    draw = random.Random(3)
    for place in places(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << draw.randrange(8)
        path.write_bytes(changed)
        try:
            rows, _ = read_chunk(path)
        except ChunkError as error:
            assert str(path) in str(error)  # noqa: PT017 - either outcome is fine, but no other error is
            continue
        assert made.same(rows, good)


@given(data=st.binary(max_size=300))
def test_garbage(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("chunk") / "x.npz"
    path.write_bytes(data)
    for read in (read_chunk, read_meta):
        with pytest.raises(CorruptChunk):
            read(path)


def test_absent_and_forbidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreadableChunk, match=r"none\.npz: cannot be read: No such file"):
        read_chunk(tmp_path / "none.npz")
    with pytest.raises(UnreadableChunk, match="cannot be read"):
        read_chunk(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    write(tmp_path / "x.npz")
    monkeypatch.setattr("tengen.files.open_regular", refuse)
    with pytest.raises(UnreadableChunk, match="Permission denied"):
        read_meta(tmp_path / "x.npz")


class Bomb:
    """Would make a file if it were ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("name", ["meta", "planes", "score", "extra"])
def test_pickles_are_never_opened(tmp_path: Path, name: str) -> None:
    bomb = np.array([Bomb(tmp_path / "exploded")], object)
    npz(tmp_path / "x.npz", parts() | {name: bomb})
    with pytest.raises(CorruptChunk):
        read_chunk(tmp_path / "x.npz")
    (tmp_path / "y.npz").write_bytes(pickle.dumps(Bomb(tmp_path / "exploded")))
    with pytest.raises(CorruptChunk):
        read_chunk(tmp_path / "y.npz")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ply", np.zeros(11, np.int16), "ply: expected"),
        ("ply", np.zeros((12, 1), np.int16), "ply: expected"),
        ("ply", np.zeros(12, np.uint16), "ply: expected int16"),
        ("policy", np.asfortranarray(np.zeros((12, 10), np.float16)), "C order"),
        ("policy", np.zeros((10**6, 10), np.float16), "policy: expected 240 bytes"),
        ("outcome", np.zeros((12, 3), np.float32), "outcome: expected probabilities"),
        ("game", np.zeros((12, 2), np.uint32), "expected 3 different games, got 1"),
        ("other", np.zeros(12), "other.npy is missing or too many"),
        ("meta", np.zeros(0, np.uint8), "not a good chunk"),
        ("meta", np.zeros(2 << 20, np.uint8), "at most"),
        ("meta", np.zeros(3), "text as bytes"),
        ("meta", np.frombuffer(b"\xff\xfe{", np.uint8), "not a good chunk"),
        ("meta", np.frombuffer(b"[" * 100000, np.uint8), "not a good chunk"),
        ("meta", as_bytes([]), "meta: expected a section with the keys"),
        ("meta", as_bytes({}), "schema: missing, expected one of 1"),
        ("meta", as_bytes({"schema": 2}), "schema: expected one of 1, got 2"),
        ("meta", as_bytes({"schema": 1, "rows": -1}), "rows: expected"),
        ("meta", as_bytes({"schema": 1, "rows": 1, "games": True}), "games: expected"),
        ("meta", as_bytes({"schema": 1, "rows": 1, "games": 1}), "network: missing, expected"),
        ("meta", as_bytes({"schema": 1, "rows": 1, "games": 1, "network": "n"}), "format: expected a section"),
    ],
)
def test_wrong_parts(tmp_path: Path, name: str, value: Any, message: str) -> None:
    npz(tmp_path / "x.npz", parts() | {name: value})
    with pytest.raises(CorruptChunk, match=message):
        read_chunk(tmp_path / "x.npz")


@pytest.mark.parametrize(
    "change", [{"game": 3}, {"version": "1"}, {"options": []}, {"rows": 10**12}, {"rows": 11}, {"games": 2}]
)
def test_wrong_meta(tmp_path: Path, change: dict[str, Any]) -> None:
    meta = json.loads(bytes(parts()["meta"])) | change
    npz(tmp_path / "x.npz", parts() | {"meta": as_bytes(meta)})
    with pytest.raises(CorruptChunk):
        read_chunk(tmp_path / "x.npz")


def test_missing_and_double_parts(tmp_path: Path) -> None:
    for name in ("meta", "score"):
        npz(tmp_path / "x.npz", {key: value for key, value in parts().items() if key != name})
        with pytest.raises(CorruptChunk, match=f"{name}.npy"):
            read_chunk(tmp_path / "x.npz")
    write(tmp_path / "x.npz")
    with zipfile.ZipFile(tmp_path / "x.npz", "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("score.npy", b"")
    with pytest.raises(CorruptChunk, match="twice"):
        read_chunk(tmp_path / "x.npz")


@pytest.mark.parametrize(
    ("error", "advice"),
    [(OSError(28, "No space left on device"), "make room"), (PermissionError(13, "Permission denied"), "permissions")],
)
def test_a_disk_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, advice: str) -> None:
    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(TengenError, match=rf"x\.npz: cannot be written: {error.strerror}.*{advice}"):
            write(tmp_path / "x.npz")
    assert list(tmp_path.iterdir()) == []


_ENDLESS = """
import sys
from pathlib import Path
from tests.helpers import rows as made
from tengen.data import write_chunk
rows = made.rows(3000)
number = 0
while True:
    write_chunk(Path(sys.argv[1]) / f"{number % 3}.npz", made.FORM, rows, made.GAME, network="n")
    if number == 0:
        print("started", flush=True)
    number += 1
"""


@pytest.mark.parametrize("after", [0.0, 0.013, 0.031, 0.07])
def test_killed_while_writing(tmp_path: Path, after: float) -> None:
    environment = os.environ | {"PYTHONPATH": paths.IMPORTABLE}
    command = [sys.executable, "-c", _ENDLESS, str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        time.sleep(after)
        process.send_signal(signal.SIGKILL)
    found = sorted(tmp_path.glob("*.npz"))
    assert found
    for path in found:
        assert made.same(read_chunk(path, made.FORM, made.GAME)[0], made.rows(3000))


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns far more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty")
def test_many_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    write_chunk(path, rows.FORM, rows.rows(8), rows.GAME, network="n")
    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(read_chunk, path, rows.FORM, rows.GAME) for _ in range(600)]
        assert all(future.result()[1].rows == 8 for future in found)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("count", [0, 1, 50])
def test_the_same_as_reading(tmp_path: Path, compress: bool, count: int) -> None:
    path = tmp_path / "a.npz"
    more = {"finished": 12, "note": "ü" * 100}
    wrote = write_chunk(path, rows.FORM, rows.rows(count), rows.GAME, network="n", more=more, compress=compress)
    assert chunk.peek_meta(path) == chunk.read_meta(path) == wrote


def test_it_is_a_glance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    wrote = write_chunk(path, rows.FORM, rows.rows(5), rows.GAME, network="n")
    monkeypatch.delattr(chunk, "read_meta")
    assert chunk.peek_meta(path) == wrote


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
        assert outcome(chunk.peek_meta, path) == outcome(chunk.read_meta, path)
    for place in range(0, 600, 11):
        damaged = bytearray(good)
        damaged[place] ^= 255
        path.write_bytes(damaged)
        assert outcome(chunk.peek_meta, path) == outcome(chunk.read_meta, path)
    assert outcome(chunk.peek_meta, tmp_path / "none.npz")[0] is chunk.UnreadableChunk  # type: ignore[index]


def test_fields_that_are_nearly_all_zeros_are_compressed(tmp_path: Path) -> None:
    game = games.make("chess")
    form = RowFormat.of(game, ())
    rows = {name: np.zeros((200, *shape), dtype) for name, (shape, dtype) in form.fields.items()}
    rows["policy"][np.arange(200), np.arange(200) * 7] = 1
    rows["outcome"][:, 1] = 1
    wrote = write_chunk(tmp_path / "x.npz", form, rows, GameIdentity.of(game), network="n")
    assert (tmp_path / "x.npz").stat().st_size < 0.05 * wrote.memory_bytes
    assert made.same(read_chunk(tmp_path / "x.npz", form, GameIdentity.of(game))[0], rows)
    assert peek_meta(tmp_path / "x.npz") == wrote


def test_fields_that_shrink_are_compressed_unless_that_is_not_wanted(tmp_path: Path) -> None:
    game, count = games.make("go", size=9), 2000
    form = RowFormat.of(game, ())
    rng = np.random.default_rng(1)
    rows = {name: np.zeros((count, *shape), dtype) for name, (shape, dtype) in form.fields.items()}
    rows["outcome"][:, 1] = 1
    rows["policy"][:] = rng.multinomial(64, np.full(82, 1 / 82), count) / 64
    packed: dict[bool | None, dict[str, int]] = {}
    for compress in (None, False, True):
        path = tmp_path / f"{compress}.npz"
        wrote = write_chunk(path, form, rows, GameIdentity.of(game), network="n", compress=compress)
        assert made.same(read_chunk(path, form, GameIdentity.of(game))[0], rows)
        assert peek_meta(path) == wrote
        with zipfile.ZipFile(path) as archive:
            packed[compress] = {info.filename: info.compress_size for info in archive.infolist()}
    assert packed[False]["policy.npy"] > 164 * count
    assert packed[None]["policy.npy"] < 0.5 * packed[False]["policy.npy"]
    assert packed[None]["ply.npy"] == packed[False]["ply.npy"], "small fields stay as they are"
    assert packed[True]["ply.npy"] < packed[None]["ply.npy"]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint8])
def test_whether_bytes_shrink_is_told_by_a_sample(dtype: Any) -> None:
    zeros = np.zeros(1 << 20, dtype).view(np.uint8)
    assert chunk._shrinks(zeros, 0.15)
    assert not chunk._shrinks(np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8), 0.65)
    assert not chunk._shrinks(zeros[: 1 << 15], 0.65), "too few bytes to be worth it"
