"""A report: runs as one HTML file that needs nothing else."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tengen import files
from tengen.errors import TengenError
from tengen.web import document, games, page
from tengen.web.finding import Found

NAME = "report.html"
GAMES = 36
"""Games in a report, of all runs together."""


def make(found: Found, most_games: int = GAMES) -> str:
    """The HTML document. Needs JAX if there are games to show."""
    runs: list[dict[str, Any]] = []
    for id, base in found.runs.items():
        reader = document.RunReader(base, id)
        run = reader.document()
        run["disk"] = reader.disk()
        run["games_embedded"] = games.selection(base, max(most_games // len(found.runs), 3)) if most_games else []
        shown = {game["network"] for game in run["games_embedded"]}
        run["games_of"] = [name for name in run["games_of"] if name in shown]
        runs.append(run)
    title = ", ".join(run["name"] for run in runs)
    return page.html(document.page(runs, found.match_results(), live=False), f"{title} · Tengen")


def write(out: Path, bases: Sequence[Path], most_games: int = GAMES) -> Path:
    """Write the report of these runs. Raises TengenError."""
    found = Found.of(bases)
    if not found.runs:
        raise TengenError(f"{bases[0] if bases else '.'}: there is no run (a folder with config.yaml)")
    files.make_folder(out.parent)
    files.write_bytes(out, make(found, most_games).encode())
    return out


def try_to_write(base: Path, most_games: int = GAMES) -> str:
    """Write RUN/report.html. Returns an error message rather than raising: a report must not end a run."""
    try:
        with _on_cpu() if most_games else contextlib.nullcontext():
            write(base / NAME, [base], most_games)
    except Exception as error:  # whatever is wrong with the files of a run, the run itself was good
        return f"the report was not written: {error}"
    return ""


@contextlib.contextmanager
def _on_cpu() -> Iterator[None]:
    """A GPU would compile for every game what takes no time on a CPU."""
    import jax

    try:
        device = jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # JAX_PLATFORMS says that there is none
        yield
        return
    with jax.default_device(device):
        yield
