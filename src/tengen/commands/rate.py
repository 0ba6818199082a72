"""`tengen rate`: the strength of all networks of a run, by matches where it is least certain."""

import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tengen.commands.arguments import (
    ENGINES,
    Arg,
    Namespace,
    amount,
    check_games,
    count,
    dtype,
    make_plan,
    positive,
    read_terms,
)
from tengen.errors import TengenError

if TYPE_CHECKING:
    from tengen.match.league import LeagueRating

HELP = "the strength of all networks of a run"
ABOUT = """Rates all networks of a run and anchors in Elo, by the Bradley-Terry model over all games that they have
played. Then plays the match that is expected to make the ratings most certain, and so on. All results are kept in
RUN/ratings. Ctrl-C ends it; the same command goes on."""
EXAMPLE = "tengen rate runs/go9 --anchors random mcts:200 --minutes 30"
_MATCHES = 20  # if no option says when to stop
ARGUMENTS = (
    Arg("RUN", "a run's folder", Path, dest="base"),
    Arg(
        "--anchors WHO*",
        "random, mcts:200, 'gtp:COMMAND', uci:COMMAND or networks (default: the references of the run)",
    ),
    Arg("--only PATTERN", "only these networks play, as '*-s1*'"),
    Arg("--games GAMES", "of one match, in pairs; 0: none (%(default)s)", count, 64),
    Arg("--no-play", "only the table of what was played before"),
    Arg("--rounds N", f"matches at most ({_MATCHES} if nothing is said)", positive),
    Arg("--minutes M", "no match begins after that", amount("minutes", 1e9)),
    Arg("--total-games N", "games at most, of all matches together", positive),
    Arg("--error ELO", "until every error (+-) is at most that", amount("Elo", 1e9)),
    Arg("--simulations N", "per move (default: rating.simulations)", positive),
    Arg("--zero NAME", "whose Elo is 0 (default: random, or the weakest mcts)"),
    Arg("--results FILE*", "count these too: folders of `tengen match`", Path, []),
    *ENGINES,
    Arg("--seed SEED", "openings and chance (%(default)s)", count, 0),
    Arg("--plot FILE", "an .svg or .png (RUN/ratings/ratings.svg)", Path),
    Arg("--json FILE", "also write the table there; -: standard output", Path),
)


def run(args: Namespace) -> int:
    _check(args)
    from tengen.config.source import RUN_FILE
    from tengen.match import league, player_spec
    from tengen.match.league import LeagueRating, LeagueResults

    terms = read_terms(args)
    anchors = None if args.anchors is None else [player_spec.parse(text, terms.options) for text in args.anchors]
    found = league.gather(args.base, anchors, args.only, configured=anchors is None or not args.simulations)
    simulations = args.simulations or found.simulations

    plays = not args.no_play and args.games > 0

    def begin() -> "LeagueRating":
        # Without a configuration that can be read it is unknown how the run's own games were played.
        own = simulations == found.simulations and not (found.config is None and (args.base / RUN_FILE).exists())
        return LeagueRating(found, LeagueResults(args.base, simulations, own, args.results), args.zero, plays=plays)

    if plays:
        with league.locked(args.base):
            rating = begin()
            code = _improve(args, rating, simulations, terms)
    else:
        rating, code = begin(), 0
        _say_notes(rating, 0)
    _report(args, rating, simulations)
    return code


def _improve(args: Namespace, rating: "LeagueRating", simulations: int, terms: Any) -> int:
    from tengen.jax_setup import explaining_memory, keep_compiled
    from tengen.match.league import RatingBudget, Venue
    from tengen.monitor.match_view import watching
    from tengen.run.signals import Stopping

    keep_compiled()
    seconds = None if args.minutes is None else 60 * args.minutes
    limits = (args.rounds, args.total_games, seconds, args.error)
    budget = RatingBudget(*limits) if any(limit is not None for limit in limits) else RatingBudget(matches=_MATCHES)
    venue = Venue(rating.league, simulations, make_plan(args, rating.league.opening_moves), terms, dtype())
    games, names = sum(result.games for result in rating.results.all), len(rating.able)
    print(f"{rating.league.run}: {names} players of {venue.game.name}, {games} games so far; {_searching(simulations)}")
    for one in rating.league.anchors:
        if one.added:
            print(one.explanation)
    said = _say_notes(rating, 0)
    kept = f"results are kept in {rating.results.path}; the same command goes on"

    def left() -> None:
        """The last words of a process that was stopped while it compiled."""
        print(kept)
        _report(args, rating, simulations)

    with Stopping(lambda text: print(text, flush=True)) as stopping, explaining_memory("--batch or --simulations"):
        stopping.on_leave = left
        events = rating.improve(venue, args.games, budget, lambda: stopping.asked, watching, args.seed)
        for event in events:
            said = _say_notes(rating, said)
            print(event if isinstance(event, str) else _line(rating, event), flush=True)
    _say_notes(rating, said)
    if stopping.asked:
        print(f"stopped by {stopping.words}: {kept}")
    return stopping.code


def _line(rating: "LeagueRating", event: Any) -> str:
    choice = event.choice
    if event.result is None:
        gap, error = event.ratings.difference(choice.a, choice.b)
        unknown = not (event.ratings[choice.a].games and event.ratings[choice.b].games)
        known = "never rated" if unknown else f"{gap:+.0f} +- {error:.0f} Elo so far"
        return f"{event.number}: {choice.a} - {choice.b} ({known})"
    result, players = event.result, [one for one in event.ratings.players if one.name != rating.zero and one.games]
    gap, error = event.ratings.difference(choice.a, choice.b)
    errors = [one.error for one in players]
    mean = f"; errors {sum(errors) / len(errors):.0f} on average, {max(errors):.0f} at most" if errors else ""
    return f"   {result.counts}: {gap:+.0f} +- {error:.0f} Elo{mean}"


def _report(args: Namespace, rating: "LeagueRating", simulations: int) -> None:
    from tengen.analysis import saving

    ratings = rating.ratings
    print(ratings.table(shutil.get_terminal_size((100, 24)).columns))
    plot = args.plot or args.base / "ratings" / "ratings.svg"
    if ratings.ranked:
        print(f"{ratings.anchor} is 0; +- holds 95 %; {_searching(simulations)}; plot: {plot}")
        with contextlib.suppress(OSError):  # writing the picture says what is wrong
            (args.base / "ratings").mkdir(exist_ok=True)
        saving.save_picture(plot, _picture(rating, ratings))
    if args.json:
        about = {"schema": 1, "run": str(args.base), "simulations": simulations, "left_out": rating.notes}
        saving.save_json(args.json, about | ratings.to_dict())


def _picture(rating: "LeagueRating", ratings: Any) -> str:
    from tengen.analysis import run_chart
    from tengen.match import league

    ages = {one.name: league.age(one.found)[:2] for one in rating.league.networks if one.found}
    of = next((k for k in (0, 1) if len({age[k] for age in ages.values()}) == len(ages)), None)
    places = {name: age[of] if of is not None else float(i) for i, (name, age) in enumerate(ages.items())}
    marks = [run_chart.RatingMark(one.name, one.elo, one.error, places.get(one.name)) for one in ratings.ranked]
    marks.sort(key=lambda mark: (mark.x is None, mark.x or 0.0, mark.name))
    # Networks that are gone have no place on the axis, and would be drawn as horizontal lines.
    anchors = {one.name for one in rating.league.anchors} | {ratings.anchor}
    kept = [mark for mark in marks if mark.x is not None or mark.name in anchors]
    across = {0: "samples learned", 1: "steps learned", None: "networks in order"}[of]
    return run_chart.draw_ratings(f"{rating.league.run.resolve().name}: Elo, {ratings.anchor} is 0", across, kept)


def _say_notes(rating: "LeagueRating", said: int) -> int:
    """Prints the notes about players who were left out, each once; gives how many were printed."""
    for note in rating.notes[said:]:
        print(f"left out: {note}", flush=True)
    return len(rating.notes)


def _searching(simulations: int) -> str:
    return f"networks search {simulations} positions a move"


def _check(args: Namespace) -> None:
    from tengen.analysis import saving
    from tengen.match import results

    check_games(args.games)
    if args.total_games is not None and args.total_games < 2:
        raise TengenError(f"--total-games: expected at least 2, since games come in pairs, got {args.total_games}")
    saving.check_picture(args.plot)
    for path in (args.plot, args.json):
        saving.check_folder(path)
    for path in args.results:
        if not (path / results.FILE if path.is_dir() else path).exists():
            raise TengenError(f"--results {path}: expected a file of results or the folder of a match")
