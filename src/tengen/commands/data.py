"""`tengen data`: rows from games that others played, and the content of a chunk."""

import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from tengen.commands.arguments import Arg, Namespace, Subcommand, positive
from tengen.errors import OptionError

HELP = "make rows from games that others played, and show what is in a file of rows"
ABOUT = """Makes training data of games that people or other programs played, and shows what is in a file of rows
(docs/data.md)."""
EXAMPLE = "tengen data from-games *.sgf --game go19 --out runs/go19/selfplay"
NOUN = "action"
COMMANDS = {
    "from-games": Subcommand(
        "rows of games that people or other programs played",
        "Writes the rows of all games in files of records: SGF, files of many SGF games one per line "
        "(.sgfs), and Tengen's own records. The policy target is the move that was played. They appear in a new folder "
        "in --out, all or none; train on them with `tengen train CONFIG --base RUN`.",
        "tengen data from-games games/*.sgf --game go19 --out runs/go19/selfplay\n"
        "tengen data from-games *.sgfs --game go --out rows",
        (
            Arg("FILE+", "records of games", Path, dest="files"),
            Arg(
                "--game GAME",
                "the configuration of the run that will train, or a game that `tengen games` lists (go: the size of "
                "its board is that of the largest in the files)",
                required=True,
            ),
            Arg("--out DIR", "the folder for the rows, such as RUN/selfplay", Path, required=True),
            Arg("--name NAME", "the name of the new folder in DIR (games)", default="games"),
        ),
    ),
    "show": Subcommand(
        "what is in a file of rows",
        "Prints what is in a file of rows: the game, the fields, and some positions with their targets.",
        "tengen data show runs/go9/selfplay/*/0000000003-a.npz --rows 2",
        (
            Arg("FILE+", "files of rows (.npz)", Path, dest="files"),
            Arg("--rows N", "positions to print (3)", positive, 3),
        ),
    ),
}


def run_from_games(args: Namespace) -> None:
    from tengen.data.records.row_maker import from_games
    from tengen.data.store.store import is_network
    from tengen.jax_setup import keep_compiled

    if not is_network(args.name):
        raise OptionError(f"--name: expected a name that a folder can have, got {args.name!r}")
    game, form, chunk_rows = _wanted(args.game, args.files)
    keep_compiled()
    tell = partial(print, file=sys.stderr) if sys.stderr.isatty() else lambda words: None
    print(from_games(args.files, args.out, game, form, name=args.name, chunk_rows=chunk_rows, tell=tell))


def _wanted(name: str, files: list[Path]) -> tuple[Any, Any, int]:
    """The game, the format of its rows, and the rows in a file."""

    from tengen import config as configuration
    from tengen import games, nets
    from tengen.config import source
    from tengen.data.format.rows import RowFormat
    from tengen.data.records.records import Record, read_each

    if games.is_name(name):
        # Many games are also a configuration, which may have other options.
        options = asdict(configuration.load(name).game.options) if name in source.shipped() else {}
        if name == "go":
            found = (each for path in files for each in read_each(path) if isinstance(each, Record))
            options["size"] = max((each.options["size"] for each in found if each.game == "go"), default=19)
        game = games.make(name, **options)
        return game, RowFormat.of(game, nets.possible_heads(game)), 20_000
    config = configuration.load(name)
    game = config.game.make()
    return game, RowFormat.of(game, config.net.heads), config.data.chunk_rows


def run_show(args: Namespace) -> None:
    from tengen.data.format.showing import show

    for number, path in enumerate(args.files):
        print("\n".join([""] * (number > 0) + list(show(path, args.rows))))
