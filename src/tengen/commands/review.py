"""`tengen review`: go through a whole game with a network."""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tengen import files
from tengen.commands.arguments import Arg, Namespace, engine_settings, file_or_dash, limits, position_arguments
from tengen.errors import TengenError

if TYPE_CHECKING:
    from tengen.analysis.review import Review, ReviewedMove

HELP = "go through a game: what each move was worth, and what was better"
ABOUT = """Goes through a whole game with a network: what each move was worth, and which one was better. Writes the
game with comments and a plot of its course beside it. Whether GAME is SGF, PGN or a text record is recognised
from its content."""
EXAMPLE = "tengen review runs/go9 game.sgf --visits 400"
_VISITS = 200
ARGUMENTS = (
    *position_arguments(_VISITS),
    Arg("GAME", "SGF, PGN, or a text record of any game", Path, dest="file"),
    Arg("--out FILE", "the game with comments (default: GAME.reviewed.sgf, .pgn or .txt)", Path),
    Arg("--plot FILE", "how the game went: .svg or .png (default: GAME.reviewed.svg)", Path),
    Arg("--json FILE", "write it as JSON; - for standard output", file_or_dash),
)


def run(args: Namespace) -> int:
    from tengen.analysis import query, review, review_output, saving
    from tengen.engine.engine import Engine
    from tengen.jax_setup import keep_compiled
    from tengen.run.networks import find_network
    from tengen.run.signals import Stopping

    visits, seconds = limits(args, _VISITS)
    settings = engine_settings(args)
    keep_compiled()
    found = find_network(args.net)
    out = args.out or _beside(args.file, review_output.record_ending(found.saved.game))
    plot = args.plot or _beside(args.file, ".svg")
    if out.exists() and out.samefile(args.file):
        raise TengenError(f"--out {out}: that is the game itself, which would be overwritten")
    saving.check_picture(plot)
    for path in (out, plot, args.json):
        saving.check_folder(path)
    game = query.read_game(args.file, found.saved, args.which, query.parse_options(args.overrides))
    if not game.record.actions:
        raise TengenError(f"{args.file}: there are no moves to review")
    stop = threading.Event()

    def stopping(words: str) -> None:
        stop.set()
        print(words, file=sys.stderr, flush=True)

    with Stopping(stopping) as stopped:
        with _progress(len(game.record.actions)) as told:
            engine, second = (Engine(found, game.game, settings) for _ in range(2))
            known = review.review(engine, game, visits, seconds, stop, told, second)
        _tell(args, known, out, plot)
        return stopped.code


def _tell(args: Namespace, known: "Review", out: Path, plot: Path) -> None:
    from tengen.analysis import review, review_output, saving

    if not known.moves:
        print("stopped before the first move was reviewed: nothing was written", file=sys.stderr)
        return
    if args.json != "-":
        sys.stdout.write(review_output.as_text(known))
    files.write_bytes(out, review_output.as_record(known).encode())
    saving.save_picture(plot, review_output.draw(known))
    if args.json is not None:
        saving.save_json(args.json, review.as_dict(known))
    if args.json != "-":
        print("\nwritten:", ", ".join(str(path) for path in (out, plot, args.json) if path is not None))


def _beside(game: Path, ending: str) -> Path:
    return game.with_name(f"{game.stem}.reviewed{ending}")


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[["ReviewedMove"], None]]:
    """A bar on a terminal, plain lines elsewhere; gives what to call with every move."""
    from tengen.analysis import review_output

    if not sys.stderr.isatty():
        yield lambda each: print(review_output.progress(each, total), file=sys.stderr, flush=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reviewing", total=total)
        yield lambda each: bar.update(task, completed=each.number, description=review_output.progress(each, total))
