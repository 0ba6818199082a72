"""`tengen nets`: list the networks with their size and cost, or show one in detail."""

import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tengen import config, nets, schema
from tengen.commands.arguments import Arg, Namespace
from tengen.errors import TengenError
from tengen.run import shipped
from tengen.words import program

if TYPE_CHECKING:
    from tengen.games.core import Game

_WIDTH = 100

HELP = "list the networks with their size and cost"
ABOUT = """Lists the named network architectures with their parameters and operations per position, and the trained
networks that come with Tengen, or shows one of them in detail, or any other trained network."""
EXAMPLE = "tengen nets b6c96-se --game go9\ntengen nets runs/go9"
ARGUMENTS = (
    Arg("NAME?", "show this one in detail, such as b6c96-se, my_net:build or the path of a network", dest="net"),
    Arg("--game GAME", "for which game: a configuration, or a game that `tengen games` lists"),
    Arg("--heads HEAD*", "extra heads (default: all that the game can teach)"),
)


def run(args: Namespace) -> None:
    from tengen.run.networks import make_game

    if args.net in shipped.names():
        _show_trained(args.net)
        return
    if args.net is not None:
        try:
            spec = nets.spec(args.net)
        except TengenError:
            if not Path(args.net).exists():
                raise
            _show_trained(args.net)
            return
        game = make_game(args.game or ("hironaka" if spec.layers else "chess" if spec.is_lc0 else "go9"))
        heads = args.heads
        if heads is None and (spec.function or spec.is_lc0):  # a network of a user may have none
            heads = ["moves_left"] if spec.is_lc0 else []
        _show(args.net, game, _heads(heads, game))
        return
    for name in (args.game,) if args.game else ("go9", "hironaka"):
        game = make_game(name)
        _table(game, _heads(args.heads, game))
    print("\nAny number of blocks and channels makes a name, as b3c32, b8c192nbt (nested) or mlp2x64. Endings:")
    for ending, meaning in nets.ENDINGS.items():
        print(f"  {ending:6} {meaning}")
    if trained := shipped.names():
        print(f"\nTrained networks that come with Tengen, to play with: {', '.join(trained)}")
        print(f"(`{program()} nets {trained[0]}` tells more about one)")


def _heads(chosen: list[str] | None, game: "Game") -> tuple[str, ...]:
    known = nets.possible_heads(game)
    if chosen is None:
        return known
    for head in chosen:
        if head not in known:
            raise TengenError(f"--heads {head}: {schema.unknown('head', head, known)}")
    return tuple(head for head in known if head in chosen)


def _show_trained(name: str) -> None:
    """`name` is that of a network that ships, or the path of one or of a run."""
    from tengen.run import networks

    found = networks.find(name).saved
    game, info = found.make_game(), found.info
    options = ", ".join(f"{key} {value}" for key, value in found.options.items() if value is not None)
    print(f"{name}: a trained network for {found.game}{f' ({options})' if options else ''}")
    print(f"  parameters       {nets.parameter_count(nets.shapes(found.spec, game)):,}")
    if "seconds" in info:
        print(f"  trained for      {info['seconds'] / 60:.1f} minutes")
    for key, text in info.get(shipped.ABOUT, {}).items():
        print(f"  {key:16} {text}")
    print(f"try it: {program()} play {shlex.quote(name)}")
    if text := info.get(shipped.CONFIGURATION):
        print(f"\n{text.rstrip()}")


def _label(game: "Game") -> str:
    height, width, planes = game.planes_shape
    return f"{game.name} {height}x{width}" if planes else game.name


def _table(game: "Game", heads: tuple[str, ...]) -> None:
    print(f"{_label(game):16} {'parameters':>12} {'operations per position':>25}  extra heads")
    for name in nets.names():
        if not list(nets.problems(nets.spec(name), game)):
            net = nets.shapes(nets.spec(name, heads), game)
            size, cost = nets.parameter_count(net), nets.operations(net, game)
            print(f"{name:16} {size:12,} {cost:25,}  {', '.join(heads) or 'none'}")


def _show(name: str, game: "Game", heads: tuple[str, ...]) -> None:
    spec = nets.spec(name, heads)
    net = nets.shapes(spec, game)
    print(f"{name} on {_label(game)}: {nets.parameter_count(net):,} parameters,", end=" ")
    print(f"{nets.operations(net, game):,} operations per position")
    for setting, value in schema.values(spec) if spec.function is None else ():
        if setting.name in ("tower", "layers", "lc0"):
            for inner, inner_value in schema.values(value) if value is not None else ():
                _line(inner, inner_value)
        elif setting.name != "options":
            _line(setting, value)
    print("parameters of each part")
    for part, count in nets.parts(net):
        print(f"  {part:16} {count:12,}")


def _line(setting: schema.Declared, value: Any) -> None:
    text = config.render_value(value)
    explained = textwrap.wrap(setting.help, _WIDTH - 36)
    print(f"  {setting.name:16} {text:16} {explained[0]}")
    for line in explained[1:]:
        print(f"{'':35} {line}")
