"""`tengen games`: list the games with their options."""

import inspect
import sys

from tengen import schema
from tengen.commands.arguments import Arg, Namespace
from tengen.errors import TengenError

HELP = "list the games with their options"
ABOUT = """Lists the games that Tengen plays, those of installed packages too, with the options that a configuration
can set for them. A game of your own is package.module:Class."""
EXAMPLE = "tengen games go"
ARGUMENTS = (
    Arg("GAME?", "only this game"),
    Arg("--check", "play random games of GAME, and say what is wrong with it"),
)


def run(args: Namespace) -> None:
    from tengen import games

    if args.check or args.game:
        (_check if args.check else _print_game)(args.game)
        return
    for name in (*games.names(), "pgx:NAME"):
        try:
            _print_game(name)
        except TengenError as error:  # a package that cannot be imported must not hide the other games
            print(error, file=sys.stderr)


def _check(name: str | None) -> None:
    from tengen import games
    from tengen.jax_setup import keep_compiled
    from tengen.testing import check_game

    if name is None:
        raise TengenError("--check: expected a game, as in `tengen games my_file:MyGame --check`")
    keep_compiled()
    for note in check_game(games.make(name)):
        print(note)
    print(f"{name}: good")


def _print_game(name: str) -> None:
    from tengen import games
    from tengen.games import pgx_adapter

    game = pgx_adapter.PgxGame if name == "pgx:NAME" else games.game_class(name)
    about = inspect.cleandoc(game.__doc__ or "").partition("\n")[0]
    print(f"{name}  {about}")
    options = schema.describe(game.Options)
    widths = [max((len(str(getattr(o, column))) for o in options), default=0) for column in ("name", "default")]
    for option in options:
        default = "null" if option.default is None else str(option.default).lower()
        print(f"    {option.name:{widths[0]}}  {default:{widths[1]}}  {option.help}: {option.expected}")
    if name == "pgx:NAME":
        print(f"    NAME is one of {', '.join(sorted(pgx_adapter.LONGEST))}")
