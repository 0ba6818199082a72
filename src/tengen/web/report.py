"""A report: runs as one HTML file that needs nothing else."""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tengen import files, jax_setup
from tengen.errors import TengenError
from tengen.web import document, games, ladder, page
from tengen.web.folders import FoundRuns

NAME = "report.html"
GAMES = 36
"""Games in a report, of all runs together."""
LARGEST = 3_000_000
"""Bytes of a report, as long as its charts fit. Games are left out for it, unless more of them were asked for."""


def make(found: FoundRuns, most_games: int = GAMES) -> str:
    """The HTML document. Needs JAX if there are games to show."""
    runs: list[dict[str, Any]] = []
    for id, base in found.runs.items():
        reader = document.RunReader(base, id)
        run = reader.document()
        run["disk"] = reader.disk()
        run["games_embedded"] = games.selection(base, max(most_games // len(found.runs), 3)) if most_games else []
        runs.append(run)
    matches, title = ladder.match_summaries(found.matches), ", ".join(run["name"] for run in runs) + " · Tengen"

    def html() -> str:
        for run in runs:
            shown = {game["network"] for game in run["games_embedded"]}
            run["games_of"] = [name for name in run["games_of"] if name in shown]
        return page.html(document.page(runs, matches, live=False), title)

    whole = html()
    if most_games > GAMES or (excess := len(whole.encode()) - LARGEST) <= 0:
        return whole
    _leave_out(runs, excess)
    return html()


def _leave_out(runs: Sequence[dict[str, Any]], excess: int) -> None:
    sizes = {id(game): len(json.dumps(game, separators=(",", ":"))) for run in runs for game in run["games_embedded"]}
    while excess > 0 and sizes:
        excess -= sizes.pop(largest := max(sizes, key=sizes.__getitem__))
        for run in runs:
            run["games_embedded"] = [game for game in run["games_embedded"] if id(game) != largest]


def write(out: Path, bases: Sequence[Path], most_games: int = GAMES) -> Path:
    found = FoundRuns.of(bases)
    if not found.runs:
        raise TengenError(f"{bases[0] if bases else '.'}: there is no run (a folder with config.yaml)")
    files.make_folder(out.parent)
    files.write_bytes(out, make(found, most_games).encode())
    return out


def try_to_write(base: Path, most_games: int = GAMES) -> str:
    """Write RUN/report.html. Returns an error message rather than raising: a report must not end a run."""
    try:
        with contextlib.ExitStack() as stack:
            if most_games:
                import jax

                # A GPU would compile for every game what takes no time on a CPU.
                stack.enter_context(jax.default_device(jax_setup.cpu()))
            write(base / NAME, [base], most_games)
    except Exception as error:  # whatever is wrong with the files of a run, the run itself was good
        return f"the report was not written: {error}"
    return ""
