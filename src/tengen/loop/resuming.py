"""Resuming a fused run from what an earlier process left in its directory, even if it was killed.

A checkpoint has the counts at its moment and the number of the last chunk before it; later chunks hold the counts of
what was played for them. So every row on the disk counts once, and what was learned since is learned again.
"""

import shlex
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tengen.data.format.chunk import CorruptChunk, UnreadableChunk, read_meta
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat, Rows
from tengen.data.store.store import Store
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.loop.in_process import SESSION
from tengen.run import locks, metrics
from tengen.run.goals import RunCounts
from tengen.train.session import TrainingSession, read_extras
from tengen.words import first_few, program


@dataclass(frozen=True)
class ResumedRun:
    counts: RunCounts  # with this session
    rows: Rows  # np: the newest, oldest first
    kept: int  # how many of them
    notes: tuple[str, ...]  # for people: where it goes on from, and what was set aside


@dataclass(frozen=True)
class _Extras:
    """What a checkpoint holds besides the state of training."""

    counts: RunCounts
    chunk: int  # the number of the last one that the counts include


def extras(counts: RunCounts, chunk: int) -> dict[str, Any]:
    return asdict(_Extras(counts, chunk))


def resume(
    base: Path,
    session: TrainingSession[Any],
    store: Store,
    game: Game,
    capacity: int,
    form: RowFormat,
    max_chunk_rows: int | None = None,
) -> ResumedRun:
    """Add what was played since the session's checkpoint, and read the newest `capacity` rows back."""
    counts, last, notes = RunCounts(), -1, []
    if (found := session.extras) is not None:
        if "ring" in found:
            advice = "go on with --mode sync or async, or with its parts"
            raise TengenError(f"{session.folder}: was trained by a part of a pipeline; {advice}")
        if "daemon" in found:
            go_on = shlex.join([program(), "daemon", str(base)])
            raise TengenError(f"{session.folder}: was trained by a daemon; go on with it: {go_on}")
        saved = read_extras(_Extras, found, session.folder)
        counts, last, notes = saved.counts, saved.chunk, [f"going on from step {session.trainer.step:,}"]
    locks.remove_unfinished(base, alone=True)  # this process alone writes here
    loaded = store.read_newest(capacity, form, GameIdentity.of(game), max_chunk_rows)
    listing = store.listing()
    notes += [f"a damaged chunk was set aside: {path}" for path in (*loaded.corrupt, *listing.corrupt)]
    for how, found in (("not used", store.unused), ("used in part", store.partly_used)):
        notes += first_few([f"{how}: {reason}" for reason in found.values()], how)
    counts = since(counts, last, store)
    if loaded.count:
        notes.append(f"read {loaded.count:,} rows back")
    # A session without a chunk or checkpoint may have left records of games.
    lines = [line for line in metrics.read(base / metrics.NAME).lines if line["kind"] == SESSION]
    before = max((int(_number(line.get("session"))) for line in lines), default=0)
    counts = replace(counts, sessions=1 + max(counts.sessions, before))
    return ResumedRun(counts, loaded.rows, loaded.count, tuple(notes))


def since(counts: RunCounts, last: int, store: Store) -> RunCounts:
    """The counts with what is in the chunks after number `last`."""
    newest = store.last()
    for chunk in store.chunks():
        if not last < chunk.number <= newest:  # others are counted already, or were not made by this run
            continue
        try:
            meta = read_meta(chunk.path, count=True)
        except (CorruptChunk, UnreadableChunk):  # nobody can learn from it, and whoever tries says so
            continue
        # Chunks from elsewhere, and those of other formats, have no sessions.
        finished, evaluations = (_number(meta.more.get(key)) for key in ("finished", "evaluations"))
        counts = counts.plus(max(int(finished), meta.games), meta.rows, evaluations)
        counts = replace(counts, sessions=max(counts.sessions, int(_number(meta.more.get("session")))))
    return counts


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) and 0 <= value < 2**53 else 0
