"""Chunks of rows from files of games, for supervised training."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from tengen import files
from tengen.data.format.chunk import write_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat, Rows
from tengen.data.records.records import RecordError, read_each
from tengen.data.records.row_maker import RowMaker
from tengen.data.store.store import GAMES, Store
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.words import counted


@dataclass(frozen=True)
class ImportedGames:
    """What became of the games in some files."""

    folder: Path
    chunks: int
    games: int
    rows: int
    without_targets: int  # games
    skipped: dict[str, int]  # a reason -> games
    examples: dict[str, str]  # a reason -> one of them

    def __str__(self) -> str:
        many = counted(self.rows, "row"), counted(self.games, "game"), counted(self.chunks, "file")
        lines = [f"{self.folder}: {many[0]} of {many[1]} in {many[2]}"]
        if self.without_targets:
            unknown = f"{self.without_targets:,} of {many[1]}"
            lines.append(f"not counted on the board: {unknown}, whose ends teach only who won")
        return "\n".join([*lines, *skipped_lines(self.skipped, self.examples)])


def from_games(
    paths: Sequence[Path],
    out: Path,
    game: Game,
    form: RowFormat,
    *,
    name: str = "games",
    chunk_rows: int = 20_000,
    tell: Callable[[str], object] = lambda words: None,
) -> ImportedGames:
    """Write the rows of all games in these files to a new folder in `out`, which appears complete or not at all.

    FileError if a file cannot be read, TengenError if no game can be used. `tell` is called with progress.
    """
    for path in paths:
        files.open_regular(path).close()  # before anything is done
    maker, store = RowMaker(game, form, chunk_rows), Store(out, GAMES)
    folder, first, written = _free(out, name), store.last() + 1, 0

    def fill(hidden: Path) -> None:
        nonlocal written
        for rows in chain.from_iterable((*(_added(maker, path, tell) for path in paths), maker.finish())):
            path = hidden / f"{first + written:010d}-{GAMES}.npz"
            write_chunk(path, form, rows, GameIdentity.of(game), network=folder.name, more={"source": "games"})
            written += 1
        if not written:
            raise TengenError("\n".join(["no game can be used", *skipped_lines(maker.skipped, maker.examples)]))

    files.write_folder(folder, fill)
    return ImportedGames(
        folder, written, maker.games, maker.rows, maker.without_targets, dict(maker.skipped), maker.examples
    )


def skipped_lines(skipped: dict[str, int], examples: dict[str, str]) -> list[str]:
    """How many games were not used, and why."""
    return [
        f"skipped {number:,}: {reason}" + (f" (such as {examples[reason]})" if examples.get(reason) else "")
        for reason, number in sorted(skipped.items(), key=lambda item: -item[1])
    ]


def _added(maker: RowMaker, path: Path, tell: Callable[[str], object]) -> Iterator[Rows]:
    for number, record in enumerate(read_each(path), 1):
        where = f"{path}, game {number}"
        if isinstance(record, RecordError):
            maker.skip("cannot be read", f"{where}: {record}")
        else:
            yield from maker.add(record, where)
    tell(f"{path}: {maker.rows:,} rows so far")


def _free(out: Path, name: str) -> Path:
    """A folder that is not there."""
    return next(path for n in count(1) if not (path := out / (name if n == 1 else f"{name}-{n}")).exists())
