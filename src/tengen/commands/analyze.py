"""`tengen analyze`: what a network thinks of one position."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tengen.commands.arguments import (
    Arg,
    Namespace,
    count,
    engine_settings,
    file_or_dash,
    limits,
    position_arguments,
    positive,
    thinking,
)
from tengen.errors import OptionError

if TYPE_CHECKING:
    from tengen.analysis.query import Query
    from tengen.nets.saving import NetworkFile

HELP = "what a network thinks of a position: text, JSON, picture, tree"
ABOUT = """Shows what a network thinks of one position: the best moves with their values, and what is expected to
follow. NET is a network's folder or a run, whose newest accepted network is meant. Without a game or moves it is the
start."""
EXAMPLE = (
    "tengen analyze runs/go9 --sgf game.sgf --move 30 --visits 800\n"
    "tengen analyze runs/go9 --position 'D4 E5' --picture board.svg"
)
_VISITS = 800
_LAYERS = ("policy", "visits", "ownership", "line")


def _layers(text: str) -> tuple[str, ...]:
    layers = tuple(part.strip() for part in text.split(",") if part.strip())
    wrong = [layer for layer in layers if layer not in _LAYERS]
    if wrong:
        raise argparse.ArgumentTypeError(f"expected some of {','.join(_LAYERS)}, got {wrong[0][:40]!r}")
    return layers


ARGUMENTS = (
    *position_arguments(_VISITS),
    Arg("--sgf --pgn --game FILE", "a game: SGF, PGN, or a text record of any game", Path, dest="file"),
    Arg("--move N", "the position after N moves of the game (default: after the last)", count),
    Arg("--position MOVES", 'moves from the start, or from there on, such as "D4 E5 pass"'),
    Arg("--most N", "how many moves to list (default: 10)", positive, 10),
    Arg("--json FILE", "write all of it as JSON; - for standard output", file_or_dash),
    Arg("--picture FILE", "draw it: FILE ends in .svg or .png", Path),
    Arg(
        "--show LAYERS",
        f"what the picture shows: some of {','.join(_LAYERS)} (default: policy,ownership,line)",
        _layers,
        ("policy", "ownership", "line"),
    ),
    Arg("--dump-tree FILE", "write the whole search tree: JSON, or text if FILE ends in .txt", Path),
)


def run(args: Namespace) -> None:
    from tengen.analysis import analysis, report, saving
    from tengen.engine.engine import Engine
    from tengen.jax_setup import keep_compiled
    from tengen.run.networks import find_network

    if args.move is not None and args.file is None:
        raise OptionError("--move: of which game? Give --sgf FILE too")
    if args.dump_tree is not None and args.visits == 0:
        raise OptionError("--dump-tree: with --visits 0 there is no tree; give some visits")
    alone = args.visits == 0  # the network without a search
    if alone:
        args.visits = None
    visits, seconds = limits(args, _VISITS)
    settings = engine_settings(args)
    saving.check_picture(args.picture)
    for path in (args.picture, args.dump_tree, args.json):
        saving.check_folder(path)
    keep_compiled()
    found = find_network(args.net)
    position = _position(args, found.saved)
    with thinking("thinking") as show:
        engine = Engine(found, position.game, settings)
        known = analysis.analyze(engine, position, 0 if alone else visits, seconds=seconds, each=show)
    if args.dump_tree is not None:
        saving.save_tree(args.dump_tree, engine.tree)
    if args.picture is not None:
        saving.save_picture(args.picture, report.draw(known, args.show))
    if args.json is not None:
        saving.save_json(args.json, analysis.as_dict(known))
    if args.json != "-":
        sys.stdout.write(report.as_text(known, args.most))
        for path in (args.picture, args.json, args.dump_tree):
            if path is not None:
                print(f"written: {path}")


def _position(args: Namespace, saved: "NetworkFile") -> "Query":
    from tengen.analysis import query

    options = query.parse_options(args.overrides)
    if args.file is None:
        found = query.new_game(saved, options)
    else:
        found = query.read_game(args.file, saved, args.which, options, args.move)
    return found if args.position is None else found.then(args.position)
