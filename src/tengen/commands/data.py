"""`tengen data`: rows from games that others played, and the content of a chunk."""

import argparse
import sys
from pathlib import Path
from typing import Any

from tengen.commands.numbers import positive
from tengen.errors import OptionError

HELP = "make rows of games that others played, and show what is in a file of rows"
ABOUT = (
    "Makes training data of games that people or other programs played, and shows what is in a file of "
    "rows (docs/data.md)."
)
EXAMPLE = "tengen data from-games *.sgf --game go19 --out runs/go19/selfplay"


def add(parser: Any) -> None:
    """Declare its arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    action = actions.add_parser(
        "from-games",
        help="rows of games that people or other programs played",
        description="Writes the rows of all games in files of records: SGF, files of many SGF games one per line "
        "(.sgfs), and Tengen's own records. The policy target is the move that was played. They appear in a new folder "
        "in --out, all or none; train on them with `tengen train CONFIG --base RUN`.",
        example="tengen data from-games games/*.sgf --game go19 --out runs/go19/selfplay\n"
        "tengen data from-games *.sgfs --game go --out rows",
    )
    action.add_argument("files", metavar="FILE", nargs="+", type=Path, help="records of games")
    action.add_argument(
        "--game",
        metavar="GAME",
        required=True,
        help="the configuration of the run that will train, or a game that `tengen games` lists (go: the size of its "
        "board is that of the largest in the files)",
    )
    action.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="the folder for the rows, such as RUN/selfplay"
    )
    action.add_argument("--name", default="games", help="the name of the new folder in DIR (games)")
    action.set_defaults(run=run_from_games)

    action = actions.add_parser(
        "show",
        help="what is in a file of rows",
        description="Prints what is in a file of rows: the game, the fields, and some positions with their targets.",
        example="tengen data show runs/go9/selfplay/*/0000000003-a.npz --rows 2",
    )
    action.add_argument("files", metavar="FILE", nargs="+", type=Path, help="files of rows (.npz)")
    action.add_argument("--rows", type=positive, default=3, metavar="N", help="positions to print (3)")
    action.set_defaults(run=run_show)


def run_from_games(args: argparse.Namespace) -> int:
    """Write the rows, and print what became of the games."""
    from tengen.data.records.row_maker import from_games
    from tengen.data.store.store import is_network
    from tengen.jax_setup import keep_compiled

    if not is_network(args.name):
        raise OptionError(f"--name: expected a name that can be a folder's, got {args.name!r}")
    game, form, chunk_rows = _wanted(args.game, args.files)
    keep_compiled()
    shown = sys.stderr.isatty()

    def tell(words: str) -> None:
        if shown:
            print(words, file=sys.stderr)

    print(from_games(args.files, args.out, game, form, name=args.name, chunk_rows=chunk_rows, tell=tell))
    return 0


def _wanted(name: str, files: list[Path]) -> tuple[Any, Any, int]:
    """The game, the format of its rows, and the rows in a file."""

    from tengen import config as configuration
    from tengen import games, nets
    from tengen.data.format.rows import RowFormat
    from tengen.data.records.records import Record, read_each

    if games.is_name(name):
        options = {}
        if name == "go":
            found = (each for path in files for each in read_each(path) if isinstance(each, Record))
            options["size"] = max((each.options["size"] for each in found if each.game == "go"), default=19)
        game = games.make(name, **options)
        return game, RowFormat.of(game, nets.possible_heads(game)), 20_000
    config = configuration.load(name)
    game = config.game.make()
    return game, RowFormat.of(game, config.net.heads), config.data.chunk_rows


def run_show(args: argparse.Namespace) -> int:
    """Print the files one after the other."""
    from tengen.data.format.showing import show

    for number, path in enumerate(args.files):
        print("\n".join([""] * (number > 0) + list(show(path, args.rows))))
    return 0
