"""Where a run stands, from checkpoints and chunks; no network is needed for that."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tengen import games
from tengen.data.format.chunk import write_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.store.store import Store
from tengen.errors import TengenError
from tengen.loop import resuming
from tengen.loop.resuming import ResumedRun
from tengen.run.goals import RunCounts
from tengen.run.metrics import Metrics
from tests.helpers.katago_files import made_arrays, on_boards, write_arrays
from tests.helpers.rows import PLAIN, rows, same

GAME = games.make("tic_tac_toe")
BEFORE = RunCounts(games=10, rows=100, evaluations=1000.0, seconds=50.0, sessions=3)


def add_chunk(base: Path, number: int, count: int, **more: Any) -> Path:
    path = base / "selfplay" / "net" / f"{number:010d}-a.npz"
    write_chunk(path, PLAIN, rows(count, number, PLAIN), GameIdentity.of(GAME), network="net", more=more)
    return path


def resume(base: Path, extras: dict[str, Any] | None, capacity: int = 1000) -> ResumedRun:
    session: Any = SimpleNamespace(extras=extras, folder=base / "train", trainer=SimpleNamespace(step=40))
    return resuming.resume(base, session, Store(base / "selfplay"), GAME, capacity, PLAIN)


def test_from_nothing(tmp_path: Path) -> None:
    found = resume(tmp_path, None)
    assert (found.counts, found.kept, found.notes) == (RunCounts(sessions=1), 0, ())


def test_chunks_after_the_checkpoint_are_added_and_others_are_not(tmp_path: Path) -> None:
    add_chunk(tmp_path, 0, 8, session=3, finished=99, evaluations=1.0)
    add_chunk(tmp_path, 1, 12, session=4, finished=7, evaluations=20.0)
    add_chunk(tmp_path, 2, 4, session=5, finished=2, evaluations=300.0)
    found = resume(tmp_path, resuming.extras(BEFORE, 0))
    assert found.counts == RunCounts(games=19, rows=116, evaluations=1320.0, seconds=50.0, sessions=6)
    assert found.kept == 24
    assert "going on from step 40" in found.notes
    everything = resume(tmp_path, None)
    assert (everything.counts.rows, everything.counts.games) == (24, 108)


def test_the_newest_rows_come_back(tmp_path: Path) -> None:
    add_chunk(tmp_path, 0, 8)
    add_chunk(tmp_path, 1, 12)
    found = resume(tmp_path, None, capacity=12)
    assert same(found.rows, rows(12, 1, PLAIN))
    assert found.notes == ("read 12 rows back",)


def test_chunks_that_know_nothing_of_sessions_count_by_their_games(tmp_path: Path) -> None:
    add_chunk(tmp_path, 0, 8)
    add_chunk(tmp_path, 1, 12, session="x", finished=None, evaluations=-5)
    assert resume(tmp_path, None).counts == RunCounts(games=5, rows=20, sessions=1)


def test_damage_is_named(tmp_path: Path) -> None:
    add_chunk(tmp_path, 0, 8)
    bad = add_chunk(tmp_path, 1, 12)
    bad.write_bytes(bad.read_bytes()[:200])
    found = resume(tmp_path, resuming.extras(BEFORE, 0))
    assert f"a damaged chunk was set aside: {bad}.corrupt" in found.notes
    assert found.counts.rows == 100, "what the checkpoint knows of has been played"


def test_files_written_for_katago_count_like_chunks_and_those_it_wrote_do_not(tmp_path: Path) -> None:
    game = games.make("go", size=3, observation="katago")
    folder = tmp_path / "selfplay" / "net" / "tdata"
    for number, name in enumerate(("0000000000-a", "0000000001-a", "413B1F1DECCD1738")):
        write_arrays(folder / f"{name}.npz", made_arrays(6, 3, seed=number))

    def counts(extras: dict[str, Any] | None) -> RunCounts:
        session: Any = SimpleNamespace(extras=extras, folder=tmp_path / "train", trainer=SimpleNamespace(step=40))
        store = Store(tmp_path / "selfplay")
        return resuming.resume(tmp_path, session, store, game, 99, RowFormat.of(game)).counts

    assert counts(None).rows == 12
    assert counts(None).games > 0
    assert counts(resuming.extras(BEFORE, 0)).rows == 106
    assert counts(resuming.extras(BEFORE, 1)).rows == 100


def test_few_of_the_files_that_are_used_in_part_are_named(tmp_path: Path) -> None:
    game = games.make("go", size=3, observation="katago")
    arrays = on_boards(made_arrays(2, 5), [(3, 3), (5, 5)])
    for number in range(7):
        write_arrays(tmp_path / "selfplay" / "net" / "tdata" / f"{number}.npz", arrays)
    write_arrays(tmp_path / "selfplay" / "net" / "tdata" / "none.npz", on_boards(arrays, [(5, 5)] * 2))
    session: Any = SimpleNamespace(extras=None)
    notes = resuming.resume(tmp_path, session, Store(tmp_path / "selfplay"), game, 99, RowFormat.of(game)).notes
    assert sum(note.startswith("used in part: ") for note in notes) == 5
    assert "and 2 more files are used in part" in notes
    assert sum(note.startswith("not used: ") and "none.npz" in note for note in notes) == 1


def test_half_written_chunks_are_removed(tmp_path: Path) -> None:
    half = add_chunk(tmp_path, 0, 8).with_name(".0000000001-a.npz.12345678.part")
    half.write_bytes(b"half")
    resume(tmp_path, None)
    assert not half.exists()


def test_a_session_that_left_only_metrics_counts(tmp_path: Path) -> None:
    with Metrics(tmp_path) as metrics:
        metrics.write(resuming.SESSION, {"session": 8})
        metrics.write(resuming.SESSION, {"session": "no number"})
    assert resume(tmp_path, resuming.extras(BEFORE, 0)).counts.sessions == 9


@pytest.mark.parametrize("extras", [{}, {"counts": {"games": 1}}, {"counts": {"odd": 1}, "chunk": 1}, {"chunk": "x"}])
def test_a_checkpoint_of_something_else(tmp_path: Path, extras: dict[str, Any]) -> None:
    with pytest.raises(TengenError, match="this checkpoint belongs to another kind of run"):
        resume(tmp_path, extras)


def test_a_stray_number_is_not_counted_with_every_start(tmp_path: Path) -> None:
    stray = add_chunk(tmp_path, 0, 8).with_name("9999999999-x.npz")
    stray.write_bytes(add_chunk(tmp_path, 1, 12).read_bytes())
    assert resume(tmp_path, None).counts.rows == 20
    assert resume(tmp_path, resuming.extras(BEFORE, 1)).counts.rows == BEFORE.rows


def test_a_daemons_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(TengenError, match=f"was trained by a daemon; go on with it: tengen daemon {tmp_path}"):
        resume(tmp_path, {"daemon": {}})
