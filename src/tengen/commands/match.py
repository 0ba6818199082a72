"""`tengen match`: two players, many games, and how sure one can be of who is stronger."""

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tengen import files
from tengen.commands.config import add_overrides
from tengen.commands.engines import add_engines, cores, count, read_terms
from tengen.commands.part import positive
from tengen.errors import TengenError

if TYPE_CHECKING:
    from tengen.match.engines.engine import Terms
    from tengen.match.folder import MatchFolder
    from tengen.match.player_spec import PlayerSpec

_ABOUT = """Plays A against B in pairs of games with colours swapped, and says who is stronger and how certain that
is. All games are kept; Ctrl-C stops the match, and the same command goes on. Engines of others are told the rules of
the match if they can be, and Tengen's own rules decide (docs/match.md)."""
_WHO = "a network, a run, random, mcts:200, 'gtp:gnugo --mode gtp --level 10' (Go) or uci:stockfish (chess)"


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "match",
        help="two players, many games: who is stronger, and how sure is that",
        description=_ABOUT,
        example="tengen match runs/go9 mcts:200 --games 100\n"
        "tengen match runs/go9 'gtp:gnugo --mode gtp --level 10' --games 20",
    )
    parser.add_argument("a", metavar="A", help=_WHO)
    parser.add_argument("b", metavar="B", help="the same")
    parser.add_argument("--games", type=positive, default=100, help="in pairs with colours swapped (%(default)s)")
    parser.add_argument(
        "--game", metavar="GAME", help="what they play: a game or a configuration (default: the networks' game)"
    )
    parser.add_argument("--simulations", type=positive, default=64, help="per move of a network (%(default)s)")
    parser.add_argument(
        "--opening-moves", type=count, default=2, metavar="K", help="random moves that begin each pair (%(default)s)"
    )
    add_engines(parser)
    parser.add_argument(
        "--batch", type=positive, metavar="N", help="games at once without foreign engines (default: 256, on a CPU 16)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the games go (default: matches/A-B)")
    parser.add_argument("--seed", type=count, default=0, help="openings and chance (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    add_overrides(parser, "change a setting of the game or of the search, as game.komi=6.5 or search.c_init=1")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Play until all games are there, or until Ctrl-C; the same command goes on."""
    if args.games % 2:
        raise TengenError(f"--games: expected an even number, since games come in pairs, got {args.games}")
    from tengen.match import player_spec
    from tengen.match.folder import MatchFolder

    terms = read_terms(args)
    asked = [player_spec.read(text, terms.options) for text in (args.a, args.b)]
    game, search = _game_and_search(args, *asked)
    a, b = player_spec.pair(*(player_spec.informed(one, game.name, vars(game.options)) for one in asked))
    from tengen.data.format.identity import GameIdentity

    about = {
        "players": {"a": a.about(), "b": b.about()},
        "game": GameIdentity.of(game).to_dict(),
        "opening_moves": args.opening_moves,
        "seed": args.seed,
        **({"search": vars(search)} if a.found or b.found else {}),
        **(_told(terms) if "engine" in (a.kind, b.kind) else {}),
    }
    folder = args.out or Path("matches") / f"{_slug(a.name)}-{_slug(b.name)}"
    with MatchFolder.opened(folder, (a.name, b.name), args.games, about) as book:
        return _play(args, (a, b), game, search, terms, book)


def _play(
    args: argparse.Namespace,
    both: "tuple[PlayerSpec, PlayerSpec]",
    game: Any,
    search: Any,
    terms: Any,
    book: "MatchFolder",
) -> int:
    import jax

    from tengen.jax_setup import explaining_memory, keep_compiled
    from tengen.match import player_spec, running
    from tengen.monitor.match_view import watching
    from tengen.run import safe_exit
    from tengen.run.stopping import Stopping

    keep_compiled()
    a, b = both
    cpu, parallel = jax.default_backend() == "cpu", args.parallel or cores()
    plan = running.MatchPlan(
        games=args.games,
        opening_moves=args.opening_moves,
        seed=args.seed,
        parallel=parallel,
        # While a player of ours looks at one half of the tables, engines think at the other.
        tables=max(parallel, args.tables or parallel * (1 if a.kind == b.kind == "engine" else 2)),
        at_once=max(2, args.batch or (16 if cpu else 256)),
    )
    with (
        watching(book) as watch,
        Stopping(watch.say) as stopping,
        explaining_memory("--batch or --simulations"),
        safe_exit.before(lambda: book.write(game)),
    ):
        try:
            if book.missing:
                before = f", going on after {len(book.played)}" if book.played else ""
                watch.say(f"{a.name} - {b.name}: {book.games} games of {game.name} in {book.folder}{before}")
                for one in both:
                    if one.added:
                        watch.say(player_spec.explained(one))
                sides = (player_spec.side(one, game, search, terms, "float32" if cpu else "bfloat16") for one in both)
                for standing in running.run(
                    game, (next(sides), next(sides)), plan, book, lambda: stopping.asked, watch.say
                ):
                    watch.update(standing)
        finally:
            games = book.write(game)
    _tell(args, book, games, stopping)
    return stopping.code


def _tell(args: argparse.Namespace, book: "MatchFolder", games: Path, stopping: Any) -> None:
    """The result so far."""
    tally = book.tally
    print("\n".join(tally.lines()))
    if tally.games:
        print(f"games: {games}; result for ratings: {book.folder / 'results.jsonl'}")
    if args.json:
        try:
            args.json.parent.mkdir(parents=True, exist_ok=True)
            files.write_bytes(args.json, json.dumps(tally.to_dict(), indent=2).encode() + b"\n")
        except OSError as error:
            raise TengenError(f"{args.json}: the figures cannot be written: {error.strerror or error}") from None
    if book.missing:
        done = f"{len(book.played)} of {book.games} games are kept in {book.folder}"
        print(f"stopped by {stopping.words}: {done}; the same command goes on")


def _game_and_search(args: argparse.Namespace, a: "PlayerSpec", b: "PlayerSpec") -> tuple[Any, Any]:
    """What is played, and how networks search; `--set` changes both."""
    from tengen import schema
    from tengen.config.override import read_overrides
    from tengen.config.settings.search import SearchSettings
    from tengen.match import player_spec, players

    overrides, problems = read_overrides(args.overrides)
    changes: dict[str, dict[str, Any]] = {"game": {}, "search": {}}
    for override in overrides:
        section, *keys = map(str, override.path)
        if len(keys) != 1 or section not in changes:
            problems.append(f"expected game.KEY or search.KEY ({override.place})")
        else:
            changes[section][keys[0]] = override.value
    if problems:
        raise TengenError("\n".join(problems))
    chosen = {"algorithm": "puct", "simulations": args.simulations} | changes["search"]
    settings = players.strongest(schema.from_options(SearchSettings, chosen, "search"))
    return player_spec.common_game(a, b, args.game, changes["game"]), settings


def _told(terms: "Terms") -> dict[str, Any]:
    """What engines are told, as JSON data."""
    return {"seconds_per_move": terms.seconds, "nodes": terms.nodes, "uci_options": dict(terms.options)}


def _slug(name: str) -> str:
    """Part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9_.]+", "_", name).strip("_.")[:60] or "player"
