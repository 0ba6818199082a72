"""The shuffle as a part: when there are enough new rows, it draws rows from the window and shuffles them.

Trainers read the rows of a shuffle as `ShuffledRows`.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tengen.config.sections import Config
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.loader.loader import Loader
from tengen.data.shuffle.folders import Shuffle, ShuffledFile, clean, newest
from tengen.data.shuffle.plan import ShufflePlan, WindowSurvey, plan
from tengen.data.shuffle.shuffle import ShuffleProgress, shuffle
from tengen.data.store.store import Store
from tengen.data.store.window import explained
from tengen.files.lease import LeaseWatch
from tengen.games.core import Game
from tengen.loop.parts.running import Say
from tengen.run.part import Part, Progress, Stop, waiting
from tengen.train.session import BatchCutter, HostRows, next_rows
from tengen.words import counted, first_few


class ShufflePart(Part):
    """One shuffling process. Several at once do no harm, but do the work twice."""

    kind, name = "shuffle", "shuffle"

    def __init__(self, config: Config, game: Game, base: Path, stop: Stop, say: Say, *, single: bool = False) -> None:
        """`single`: make one shuffle, however few rows are new."""
        self._single = single
        self.change(config)
        self._seed, self._base, self._stop, self._say = config.run.seed, base, stop, say
        form = RowFormat.of(game, config.net.heads)
        self._survey = WindowSurvey(Store(base / "selfplay"), form, GameIdentity.of(game), config.data.max_chunk_rows)
        self._watch = LeaseWatch(config.shuffle.lease_minutes)
        self._named: set[str] = set()

    def change(self, config: Config) -> None:
        self._config, self._settings, self._window = config, config.shuffle, config.data.window
        self._first = config.data.first_rows
        self._after = 1 if self._single else config.ring.shuffle_rows

    def plan(self) -> ShufflePlan:
        """What a shuffle would do now; `str` describes it."""
        return plan(self._survey, self._settings, self._window)

    def unusable(self) -> str:
        """Why none of the rows can be used; empty if some can, or if there are none."""
        what = self.plan()
        return "" if what.total_rows else next((problem.reason for problem in what.problems), "")

    def explain(self) -> str:
        """The window with the numbers of this run, and how often shuffles use its rows."""
        config, what = self._config, self.plan()
        window, drawn, after = what.window_rows, what.rows, config.ring.shuffle_rows
        passes = config.ring.passes_per_shuffle
        uses = passes * drawn / after
        fewer = (
            "; that is fewer, so training will wait for shuffles: lower ring.shuffle_rows, or raise "
            "shuffle.keep_target_rows or ring.passes_per_shuffle"
        )
        return (
            f"{explained(what.total_rows, self._window)}\n\n"
            f"A shuffle now draws {drawn:,} of the {window:,} rows in the window (shuffle.keep_target_rows = "
            f"{config.shuffle.keep_target_rows:,}).\n"
            f"With a shuffle after every {after:,} new rows (ring.shuffle_rows), each used "
            f"{counted(passes, 'time')} (ring.passes_per_shuffle), there are {uses:,.2f} samples per new row.\n"
            f"Training uses at most train.samples_per_row = {config.train.samples_per_row:g}"
            f"{'' if uses >= config.train.samples_per_row else fewer}."
        )

    def run_once(self, *, again: bool = False) -> Progress:
        """Make one shuffle if there are enough new rows; with `again`, even if there are none."""
        what, last = self.plan(), newest(self._base, self._survey.game)
        self._name((problem.reason for problem in what.problems), "not used")
        self._name(what.partly_used, "used in part")
        total = what.total_rows
        if total < self._first:
            return waiting(f"{total:,} of {self._first:,} rows until the first shuffle", total, self._first)
        fresh = total - (0 if last is None else last.total_rows)
        if last is not None and 0 <= fresh < self._after and not again:
            return waiting(f"{fresh:,} of {self._after:,} new rows until the next shuffle", fresh, self._after)
        made = self._make(what, 0 if last is None or fresh else last.number + 1)
        if made is None:
            return waiting("stopped in the middle of a shuffle, which is removed")
        self._name(made.index["not_used"], "not used")
        removed = clean(self._base, self._settings, self._watch)
        rows = made.index["rows"]
        for path in removed:
            self._say(f"removed, since it is no longer read: {path}")
        words = f"shuffled {rows['train']:,} rows to train with and {rows['validation']:,} to validate with"
        figures = {"shuffle": made.name, "rows": total}
        return Progress(f"{words}: {made.name}", event=True, ended=self._single, figures=figures)

    def _make(self, what: ShufflePlan, times: int) -> Shuffle | None:
        """`times`: how often these rows may have been shuffled before, each time in another order."""

        def tell(step: ShuffleProgress) -> None:
            self.show(Progress(f"{step.doing}: {step.rows:,} of {step.of:,} rows", done=step.rows, of=step.of))

        return shuffle(what, self._base, self._seed + what.total_rows + times * 2**40, tell, self._stop)

    def _name(self, reasons: Iterable[str], how: str) -> None:
        new = [reason for reason in reasons if reason not in self._named]
        self._named |= set(new)
        for line in first_few([f"{how}: {reason}" for reason in new], how):
            self._say(line)


class ShuffledRows:
    """The rows of some files of one shuffle, read in order. Meanwhile the shuffle is not removed."""

    def __init__(
        self, shuffle: Shuffle, files: Sequence[ShuffledFile], batch: int, make_loader: Callable[[], Loader]
    ) -> None:
        self.shuffle, self.waited = shuffle, 0.0  # seconds for batches
        self._files = files
        self._rows = 0  # handed out
        self._begun = 0  # files of which rows were handed out, or that are damaged
        self._begun_rows = 0  # in those of them that are good
        self._damaged: dict[Path, str] = {}  # why
        self._cutter = BatchCutter(batch, self._read)
        with contextlib.ExitStack() as closing:
            closing.enter_context(shuffle.open())
            self._loader = closing.enter_context(make_loader())
            self._loader.start()
            self._closing = closing.pop_all()

    def blocks(self, batches: int) -> Iterator[HostRows]:
        for block in self._cutter.blocks(batches):
            yield block
            self._rows += len(block["ply"])

    def _read(self) -> HostRows | None:
        began = time.monotonic()
        found = next_rows(self._loader)
        self.waited += time.monotonic() - began
        if found is None:
            self._rows = sum(file.rows for file in self._files) + 1  # so that all have begun, even empty ones
        return found

    def begun(self) -> list[str]:
        """Files of which rows were handed out for the first time since the last call, by content.

        Damaged files are among them: there is no need to try them again.
        """
        self._damaged |= {bad.path: bad.reason for bad in self._loader.get_stats().last_rejected}
        new = []
        for file in self._files[self._begun :]:
            if file.path not in self._damaged:
                if self._begun_rows >= self._rows:
                    break
                self._begun_rows += file.rows
            new.append(file.sha256)
            self._begun += 1
        return new

    def damaged(self) -> list[str]:
        return list(self._damaged.values())

    def close(self) -> None:
        self._closing.close()
