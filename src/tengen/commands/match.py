"""`tengen match`: two players, many games, and how sure one can be of who is stronger."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tengen import files, schema
from tengen.commands.arguments import (
    ENGINES,
    Arg,
    Namespace,
    check_games,
    count,
    dtype,
    make_plan,
    overrides,
    positive,
    read_terms,
)
from tengen.errors import TengenError

if TYPE_CHECKING:
    from tengen.match.engines.engine import Terms
    from tengen.match.match_games import MatchFolder
    from tengen.match.player_spec import PlayerSpec

HELP = "play many games between two players: who is stronger, and how certain is that"
ABOUT = """Plays A against B in pairs of games with colours swapped, and says who is stronger and how certain that
is. All games are kept; Ctrl-C stops the match, and the same command goes on. Foreign engines are told the rules of
the match if possible, and Tengen's own rules decide (docs/match.md)."""
EXAMPLE = (
    "tengen match runs/go9 mcts:200 --games 100\ntengen match runs/go9 'gtp:gnugo --mode gtp --level 10' --games 20"
)
_WHO = (
    "a network, a run, random, mcts:200, 'gtp:gnugo --mode gtp --level 10' (Go), uci:stockfish (chess), or "
    "uci@100:stockfish with 100 nodes a move"
)
ARGUMENTS = (
    Arg("A", _WHO),
    Arg("B", "the same"),
    Arg("--games GAMES", "in pairs with colours swapped (%(default)s)", positive, 100),
    Arg("--game GAME", "what they play: a game or a configuration (default: the networks' game)"),
    Arg("--simulations SIMULATIONS", "per move of a network (%(default)s)", positive, 64),
    Arg("--opening-moves K", "random moves that begin each pair (%(default)s)", count, 2),
    *ENGINES,
    Arg("--out DIR", "where the games go (default: matches/A-B)", Path),
    Arg("--seed SEED", "openings and chance (%(default)s)", count, 0),
    Arg("--json FILE", "also write the figures there", Path),
    overrides(
        "change a setting of the game or of the search, as game.komi=6.5 or search.c_init=1; a.search.c_init=1 "
        "changes the search of A alone"
    ),
)


def run(args: Namespace) -> int:
    check_games(args.games)
    from tengen.data.format.identity import GameIdentity
    from tengen.jax_setup import keep_compiled
    from tengen.match import player_spec
    from tengen.match.match_games import MatchFolder

    terms = read_terms(args)
    named = [player_spec.parse(text, terms.options) for text in (args.a, args.b)]
    game, searches = _game_and_searches(args, *named)
    a, b = player_spec.pair(*(one.told_rules(game.name, vars(game.options)) for one in named))
    about = {
        "players": {"a": a.about(), "b": b.about()},
        "game": GameIdentity.of(game).to_dict(),
        "opening_moves": args.opening_moves,
        "seed": args.seed,
    }
    if {"network", "model"} & {a.kind, b.kind}:
        of_a, of_b = map(vars, searches)
        about |= {"search": of_a} if of_a == of_b else {"search": of_a, "search_of_b": of_b}
    if "engine" in (a.kind, b.kind):
        about |= {"seconds_per_move": terms.seconds, "nodes": terms.nodes, "uci_options": dict(terms.options)}
    keep_compiled()
    slugs = [re.sub(r"[^A-Za-z0-9_.]+", "_", one.name).strip("_.")[:60] or "player" for one in (a, b)]
    folder = args.out or Path("matches") / "-".join(slugs)
    with MatchFolder.opened(folder, (a.name, b.name), args.games, about) as match:
        return _play(args, [a, b], game, searches, terms, match)


def _play(
    args: Namespace, both: "list[PlayerSpec]", game: Any, searches: Any, terms: "Terms", match: "MatchFolder"
) -> int:
    from tengen.jax_setup import explaining_memory
    from tengen.match.driver import play_match
    from tengen.monitor.match_view import watching
    from tengen.run import safe_exit
    from tengen.run.signals import Stopping

    a, b = both
    # While a player of ours looks at one half of the tables, engines think at the other.
    plan = make_plan(args, args.opening_moves, 1 if a.kind == b.kind == "engine" else 2)
    with (
        watching(match) as watch,
        Stopping(watch.say) as stopping,
        explaining_memory("--batch or --simulations"),
        safe_exit.before(lambda: match.write(game)),
    ):
        try:
            if match.missing:
                before = f", going on after {len(match.played)}" if match.played else ""
                watch.say(f"{a.name} - {b.name}: {match.games} games of {game.name} in {match.folder}{before}")
                for one in both:
                    if one.added:
                        watch.say(one.explanation)
                sides = a.side(game, searches[0], dtype(), terms), b.side(game, searches[1], dtype(), terms)
                play_match(game, sides, plan, match, lambda: stopping.asked, watch.update, watch.say)
        finally:
            games = match.write(game)
    _report(args, match, games, stopping)
    return stopping.code


def _report(args: Namespace, match: "MatchFolder", games: Path, stopping: Any) -> None:
    from tengen.match import results

    print("\n".join(match.lines()))
    if match.played:
        print(f"games: {games}; result for ratings: {match.folder / results.FILE}")
    if args.json:
        files.make_folder(args.json.parent)
        schema.write_json(args.json, match.to_dict(), indent=2)
    if match.missing:
        done = f"{len(match.played)} of {match.games} games are kept in {match.folder}"
        print(f"stopped by {stopping.words}: {done}; the same command goes on")


def _game_and_searches(args: Namespace, a: "PlayerSpec", b: "PlayerSpec") -> tuple[Any, list[Any]]:
    """The game, and how A and B search if they are networks; `--set` changes all of them."""
    from tengen.config.reader import read_overrides
    from tengen.config.settings.search import SearchSettings
    from tengen.match import player_spec, players

    overrides, problems = read_overrides(args.overrides)
    changes: dict[str, dict[str, Any]] = {"game": {}, "search": {}, "a.search": {}, "b.search": {}}
    for override in overrides:
        section, _, key = ".".join(map(str, override.path)).rpartition(".")
        if section not in changes:
            problems.append(f"expected game.KEY, search.KEY, a.search.KEY or b.search.KEY ({override.place})")
        else:
            changes[section][key] = override.value
    if problems:
        raise TengenError("\n".join(problems))
    both = {**players.PLAYING, "simulations": args.simulations, **changes["search"]}
    searches = [
        players.strongest(schema.from_options(SearchSettings, both | own, section if own else "search"))
        for section, own in changes.items()
        if section in ("a.search", "b.search")
    ]
    return player_spec.common_game(a, b, args.game, changes["game"]), searches
