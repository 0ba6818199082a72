"""What was played, counted without reading rows."""

from pathlib import Path

import pytest

from tengen import match
from tengen.data.format.chunk import write_chunk
from tengen.data.store.store import Store
from tengen.match import results
from tengen.monitor import totals
from tests.helpers import rows as made


def add(base: Path, rows: int, **more: object) -> Path:
    path = Store(base / "selfplay").reserve("net")
    write_chunk(path, made.FORM, made.rows(rows), made.GAME, network="net", more=more)
    return path


def test_each_chunk_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []
    real = totals.peek_meta
    monkeypatch.setattr(totals, "peek_meta", lambda path, **more: asked.append(path) or real(path, **more))
    counter = totals.TotalsCounter(tmp_path)
    assert counter.look() == totals.PlayedTotals()
    first = add(tmp_path, 8, finished=9)
    second = add(tmp_path, 4)
    assert (counter.look().rows, counter.look().games) == (12, 9 + 1)
    bad = add(tmp_path, 4)
    bad.write_bytes(b"")
    assert counter.look().corrupt == counter.look().corrupt == (bad,)
    assert asked == [first, second, bad]
    first.unlink()
    assert (counter.look().rows, counter.look().chunks) == (4, 1)


def test_what_may_not_be_read_is_told_and_asked_again(tmp_path: Path) -> None:
    path = Store(tmp_path / "selfplay").reserve("net")
    path.mkdir(parents=True)
    counter = totals.TotalsCounter(tmp_path)
    assert "cannot be read" in counter.look().unreadable[0]
    path.rmdir()
    add(tmp_path, 4)
    assert counter.look() == totals.PlayedTotals(rows=4, games=1, chunks=1)


@pytest.mark.parametrize("finished", ["many", True, None, 2.5])
def test_strange_counts_of_games(tmp_path: Path, finished: object) -> None:
    add(tmp_path, 8, finished=finished)
    assert totals.TotalsCounter(tmp_path).look().games == 2


def test_ratings(tmp_path: Path) -> None:
    assert totals.ratings(tmp_path) is None
    match.append(tmp_path / results.OF_RUN, match.MatchResult("net", "random", 5, 0, 5))
    ratings = totals.ratings(tmp_path)
    assert ratings is not None
    assert ratings.anchor == "random"
    assert ratings["net"].elo == pytest.approx(0, abs=1e-6)


def asked_of(base: Path, memory: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[totals.PlayedTotals, list[str]]:
    """What a new process finds, and the chunks that it had to read."""
    asked: list[str] = []
    real = totals.peek_meta
    with monkeypatch.context() as patch:
        patch.setattr(totals, "peek_meta", lambda path, **more: asked.append(path.name) or real(path, **more))
        return totals.TotalsCounter(base, memory).look(), asked


def test_the_next_process_asks_only_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tengen.monitor.totals._WORTH", 2)
    base, memory = tmp_path / "run", tmp_path / "cache" / "x.json"
    paths = [add(base, 8, finished=9), add(base, 4)]
    assert len(asked_of(base, memory, monkeypatch)[1]) == 2
    paths.append(add(base, 12))
    found, asked = asked_of(base, memory, monkeypatch)
    assert (found, asked) == (totals.TotalsCounter(base).look(), [paths[2].name])
    write_chunk(paths[0], made.FORM, made.rows(16), made.GAME, network="net")  # another file under that name
    found, asked = asked_of(base, memory, monkeypatch)
    assert (found.rows, asked) == (32, [paths[0].name, paths[2].name])
    assert asked_of(base, memory, monkeypatch)[1] == []
    paths[1].unlink()
    assert asked_of(base, memory, monkeypatch)[0].rows == 28
    for content in (b"", b"[]", b'{"schema": 1, "chunks": {"net/0000000000-a.npz": [1]}}', b"\xff"):
        memory.write_bytes(content)
        assert asked_of(base, memory, monkeypatch)[0].rows == 28
    memory.unlink()
    memory.mkdir()
    assert asked_of(base, memory, monkeypatch)[0].rows == 28


def test_a_few_chunks_leave_nothing_behind(tmp_path: Path) -> None:
    add(tmp_path / "run", 8)
    totals.TotalsCounter(tmp_path / "run", tmp_path / "cache" / "x.json").look()
    assert not (tmp_path / "cache").exists()
