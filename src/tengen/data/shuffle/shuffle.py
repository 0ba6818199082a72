"""The shuffle: rows of the window, drawn at random, in random order, in files of a fixed size.

    survey = Survey(store, form, game)
    what = plan(survey, settings, window)          # print(what) for a dry run
    made = shuffle(what, base, seed=1)
    with newest(base).open() as found:             # the trainer
        for file in found.train: read_chunk(file.path)

See docs/shuffle.md; the work itself is in shuffle_work.py.
"""

import dataclasses
import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tengen import files
from tengen.data.format.chunk import cannot_write
from tengen.data.shuffle import folders
from tengen.data.shuffle.folders import Shuffle
from tengen.data.shuffle.plan import SIDES, ShufflePlan, ShuffleProblem
from tengen.data.shuffle.work import ShuffleProgress, ShuffleResult, ShuffleStopped, ShuffleWork
from tengen.errors import TengenError
from tengen.words import in_bytes


def shuffle(
    plan: ShufflePlan,
    base: Path,
    seed: int,
    progress: Callable[[ShuffleProgress], object] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> Shuffle | None:
    """Make what is planned in the run directory `base`; None if `stop` says so before it is done.

    Chunks that turn out corrupt are set aside; those that have vanished are passed over; both are named in the index.
    The same plan and seed give the same files. TengenError if there is nothing to shuffle, or if the disk is full or
    cannot be written; nothing is left behind then.
    """
    if not plan.rows:
        reasons = "".join(f"\n{problem.reason}" for problem in plan.problems)
        raise TengenError(f"{plan.store.folder}: there are no rows to shuffle{reasons}")
    name = folders.new_name(base)
    final = base / folders.FOLDER / name
    scratch_place = Path(plan.settings.scratch or final.parent)
    try:
        with (
            folders.unfinished(final.parent, name) as part,
            folders.unfinished(scratch_place, f"{name}-scratch") as scratch,
        ):
            _check_space(plan, part, scratch)
            result = ShuffleWork(plan, seed, part, scratch, progress, stop).all()
            index = {"name": name, "seed": seed, **_index(plan, result)}
            (part / folders.READERS).mkdir()
            files.write_bytes(part / folders.INDEX, json.dumps(index, indent=1).encode())
            part.rename(final)
    except ShuffleStopped:
        return None
    except OSError as error:
        raise TengenError(cannot_write(Path(error.filename or final), error)) from error
    return Shuffle.load(final)


def _index(plan: ShufflePlan, result: ShuffleResult) -> dict[str, object]:
    """What index.json says; see docs/shuffle.md."""
    return {
        "schema": folders.SCHEMA,
        "rows": {side: sum(file.rows for file in result.files[side]) for side in SIDES},
        "window": [plan.total_rows - plan.window_rows, plan.total_rows],
        "total_rows": plan.total_rows,
        "chunks": [plan.sources[0].chunk.path.name, plan.sources[-1].chunk.path.name],
        "format": plan.form.to_dict(),
        **plan.game.to_dict(),
        "settings": dataclasses.asdict(plan.settings),
        "window_settings": dataclasses.asdict(plan.window),
        "not_used": [_set_aside(plan, problem) for problem in (*plan.problems, *result.problems)],
        **{
            side: [{**file._asdict(), "path": f"{side}/{file.path.name}"} for file in result.files[side]]
            for side in SIDES
        },
    }


def _set_aside(plan: ShufflePlan, problem: ShuffleProblem) -> str:
    """Rename a corrupt chunk, leave others alone, and give the reason."""
    try:
        if problem.corrupt:
            plan.store.set_aside(problem.path, problem.reason)
    except TengenError as error:
        return f"{problem.reason} ({error})"
    return problem.reason


def _check_space(plan: ShufflePlan, part: Path, scratch: Path) -> None:
    """TengenError if it is plain that the disk will be full before the end."""
    size = plan.bytes_written
    needs = {part: 0 if plan.settings.compress else size, scratch: size}
    if part.stat().st_dev == scratch.stat().st_dev:
        needs = {scratch: sum(needs.values())}
    for folder, need in needs.items():
        free = shutil.disk_usage(folder).free
        if free < need:
            raise TengenError(
                f"{folder}: cannot be written: a shuffle needs {in_bytes(need)} here and {in_bytes(free)} are free; "
                "make room, or make shuffle.keep_target_rows less"
            ) from OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
