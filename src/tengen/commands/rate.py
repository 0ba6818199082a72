"""`tengen rate`: how strong all networks of a run are, and matches where that is least certain."""

import argparse
import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tengen.commands.engines import add_engines, cores, count, read_terms
from tengen.commands.part import positive
from tengen.errors import TengenError

if TYPE_CHECKING:
    from tengen.match.league_rating import LeagueRating

_ABOUT = """Elo of all networks of a run and of anchors, by Bradley-Terry's model over all games that they have played.
Then the match that is expected to make the ratings most certain is played, and so on. All results are kept in
RUN/ratings. Ctrl-C ends it; the same command goes on."""
_MATCHES = 20  # if nobody says when to stop


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "rate",
        help="the strength of all networks of a run",
        description=_ABOUT,
        example="tengen rate runs/go9 --anchors random mcts:200 --minutes 30",
    )
    parser.add_argument("base", metavar="RUN", type=Path, help="a run's folder")
    parser.add_argument(
        "--anchors",
        nargs="*",
        metavar="WHO",
        help="random, mcts:200, 'gtp:COMMAND', uci:COMMAND or networks (default: the references of the run)",
    )
    parser.add_argument("--only", metavar="PATTERN", help="only these networks play, as '*-s1*'")
    parser.add_argument("--games", type=count, default=64, help="of one match, in pairs; 0: none (%(default)s)")
    parser.add_argument("--no-play", action="store_true", help="only the table of what was played before")
    parser.add_argument("--rounds", type=positive, metavar="N", help=f"matches at most ({_MATCHES} if nothing is said)")
    parser.add_argument("--minutes", type=float, metavar="M", help="no match begins after that")
    parser.add_argument("--total-games", type=positive, metavar="N", help="games at most, of all matches together")
    parser.add_argument("--error", type=float, metavar="ELO", help="until every error (+-) is at most that")
    parser.add_argument("--simulations", type=positive, metavar="N", help="per move (default: rating.simulations)")
    parser.add_argument("--zero", metavar="NAME", help="whose Elo is 0 (default: random, or the weakest mcts)")
    parser.add_argument(
        "--results", nargs="*", type=Path, default=[], metavar="FILE", help="count these too: folders of `tengen match`"
    )
    add_engines(parser)
    parser.add_argument("--batch", type=positive, metavar="N", help="games at once (default: 256, on a CPU 16)")
    parser.add_argument("--seed", type=count, default=0, help="openings and chance (%(default)s)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="an .svg or .png (RUN/ratings/ratings.svg)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the table there; -: standard output")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Rate, play, rate again."""
    _check(args)
    from tengen.match import league, league_results, player_spec
    from tengen.match.league_rating import LeagueRating

    terms = read_terms(args)
    anchors = None if args.anchors is None else [player_spec.read(text, terms.options) for text in args.anchors]
    found = league.gather(args.base, anchors, args.only, configured=anchors is None or not args.simulations)
    simulations = args.simulations or found.simulations

    def begin() -> "LeagueRating":
        # Without a configuration that can be read nobody knows how the run's own games were played.
        own = simulations == found.simulations and not (found.config is None and (args.base / "config.yaml").exists())
        return LeagueRating(
            found, league_results.LeagueResults.of_run(args.base, simulations, own, args.results), args.zero
        )

    if args.no_play or args.games == 0:
        rating, code = begin(), 0
        _say_notes(rating, 0)
    else:
        with league_results.locked(args.base):
            rating = begin()
            code = _improve(args, rating, simulations, terms)
    _tell(args, rating, simulations)
    return code


def _improve(args: argparse.Namespace, rating: "LeagueRating", simulations: int, terms: Any) -> int:
    import jax

    from tengen.jax_setup import explaining_memory, keep_compiled
    from tengen.match import player_spec
    from tengen.match.league_rating import RatingBudget, Venue
    from tengen.match.running import MatchPlan
    from tengen.monitor.match_view import watching
    from tengen.run.stopping import Stopping

    keep_compiled()
    cpu, parallel = jax.default_backend() == "cpu", args.parallel or cores()
    plan = MatchPlan(
        games=args.games,
        opening_moves=rating.league.opening_moves,
        seed=args.seed,
        parallel=parallel,
        tables=max(parallel, args.tables or 2 * parallel),
        at_once=max(2, args.batch or (16 if cpu else 256)),
    )
    seconds = None if args.minutes is None else 60 * args.minutes
    limits = (args.rounds, args.total_games, seconds, args.error)
    budget = RatingBudget(*limits) if any(limit is not None for limit in limits) else RatingBudget(matches=_MATCHES)
    venue = Venue(rating.league, simulations, plan, terms, "float32" if cpu else "bfloat16")
    games, names = sum(result.games for result in rating.ledger.all), len(rating.able)
    print(f"{rating.league.run}: {names} players of {venue.game.name}, {games} games so far; {_searching(simulations)}")
    for one in rating.league.anchors:
        if one.added:
            print(player_spec.explained(one))
    said = _say_notes(rating, 0)
    with Stopping(lambda text: print(text, flush=True)) as stopping, explaining_memory("--batch or --simulations"):
        events = rating.improve(venue, args.games, budget, lambda: stopping.asked, watching, args.seed)
        for event in events:
            said = _say_notes(rating, said)
            print(event if isinstance(event, str) else _line(rating, event), flush=True)
    _say_notes(rating, said)
    if stopping.asked:
        print(f"stopped by {stopping.words}: results are kept in {rating.ledger.path}; the same command goes on")
    return stopping.code


def _line(rating: "LeagueRating", event: Any) -> str:
    """One match, before or after it."""
    choice = event.choice
    if event.result is None:
        gap, error = event.ratings.difference(choice.a, choice.b)
        unknown = not (event.ratings[choice.a].games and event.ratings[choice.b].games)
        known = "never rated" if unknown else f"{gap:+.0f} +- {error:.0f} Elo so far"
        return f"{event.number}: {choice.a} - {choice.b} ({known})"
    result, players = event.result, [one for one in event.ratings.players if one.name != rating.zero and one.games]
    counts = f"+{result.wins} ={result.draws} -{result.losses}"
    gap, error = event.ratings.difference(choice.a, choice.b)
    errors = [one.error for one in players]
    mean = f"; errors {sum(errors) / len(errors):.0f} on average, {max(errors):.0f} at most" if errors else ""
    return f"   {counts}: {gap:+.0f} +- {error:.0f} Elo{mean}"


def _tell(args: argparse.Namespace, rating: "LeagueRating", simulations: int) -> None:
    """The table, the picture, the data."""
    from tengen.analysis import saving
    from tengen.match import standings

    ratings = rating.ratings
    print(standings.table(ratings, shutil.get_terminal_size((100, 24)).columns))
    played = standings.ranked(ratings)
    plot = args.plot or args.base / "ratings" / "ratings.svg"
    if played:
        print(f"{ratings.anchor} is 0; +- holds 95 %; {_searching(simulations)}; plot: {plot}")
        with contextlib.suppress(OSError):  # what is wrong is said when it is written to
            (args.base / "ratings").mkdir(exist_ok=True)
        saving.save_picture(plot, _picture(rating, ratings))
    if args.json:
        about = {"run": str(args.base), "simulations": simulations, "left_out": rating.notes}
        saving.save_json(args.json, standings.to_dict(ratings, about))


def _picture(rating: "LeagueRating", ratings: Any) -> str:
    from tengen.analysis import rating_chart
    from tengen.match import league, standings

    ages = {one.name: league.age(one.found)[:2] for one in rating.league.networks if one.found}
    of = next((k for k in (0, 1) if len({age[k] for age in ages.values()}) == len(ages)), None)
    places = {name: age[of] if of is not None else float(i) for i, (name, age) in enumerate(ages.items())}
    marks = [rating_chart.Mark(one.name, one.elo, one.error, places.get(one.name)) for one in standings.ranked(ratings)]
    marks.sort(key=lambda mark: (mark.x is None, mark.x or 0.0, mark.name))
    # Networks that are gone have no place, and would be lines across.
    anchors = {one.name for one in rating.league.anchors} | {ratings.anchor}
    kept = [mark for mark in marks if mark.x is not None or mark.name in anchors]
    across = {0: "samples learned", 1: "steps learned", None: "networks in order"}[of]
    return rating_chart.draw(f"{rating.league.run.resolve().name}: Elo, {ratings.anchor} is 0", across, kept)


def _say_notes(rating: "LeagueRating", said: int) -> int:
    """Those about players who were left out, each once; how many were said."""
    for note in rating.notes[said:]:
        print(f"left out: {note}", flush=True)
    return len(rating.notes)


def _searching(simulations: int) -> str:
    return f"networks search {simulations} positions a move"


def _check(args: argparse.Namespace) -> None:
    """What argparse does not."""
    from tengen.analysis import saving

    if args.games % 2:
        raise TengenError(f"--games: expected an even number, since games come in pairs, got {args.games}")
    if args.total_games is not None and args.total_games < 2:
        raise TengenError(f"--total-games: expected at least 2, since games come in pairs, got {args.total_games}")
    saving.check_picture(args.plot)
    for path in (args.plot, args.json):
        saving.check_folder(path)
    for name in ("minutes", "error"):
        value = getattr(args, name)
        if value is not None and not 0 < value < 1e9:
            raise TengenError(f"--{name}: expected a number above 0, got {value:g}")
    for path in args.results:
        if not (path / "results.jsonl" if path.is_dir() else path).exists():
            raise TengenError(f"--results {path}: expected a file of results or the folder of a match")
