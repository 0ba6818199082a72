"""How often a connect four network plays a perfect move: one that keeps what the position is worth (win, draw, loss).

    python benchmarks/connect_four_perfect.py measure NET        # a run, or a folder or file with a network
    python benchmarks/connect_four_perfect.py measure NET --own 200 --positions mine.json
    python benchmarks/connect_four_perfect.py solve --count 1000 --positions mine.json

Positions have 8 stones or more: half from random games, half from games of plain MCTS; `--own` adds some from games of
the network itself. Each is solved once and kept in a JSON file; the one that ships holds 1,000. Solving is a hundred
times faster where numba is installed: with it 1,000 positions take minutes, without it hours.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import connect_four_solver as solver
import jax
import jax.numpy as jnp
import numpy as np

from tengen import files, games
from tengen.config.settings.match import MatchSettings
from tengen.config.settings.search import SearchSettings
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.match import players
from tengen.match.device_match import play
from tengen.match.players import Evaluate, Player
from tengen.match.results import wilson
from tengen.nets.evaluators import saved
from tengen.run import networks

SHIPPED = Path(__file__).with_name("connect_four_solved.json")
FIRST_PLY = 8
BANDS = ((8, 11), (12, 15), (16, 19), (20, 25), (26, 41))


class Position(NamedTuple):
    """A position and what every move is worth there, for the player to move."""

    columns: str  # the columns played so far, 1 to 7
    worths: tuple[int | None, ...]  # [7]: 1, 0, -1; None where the column is full
    source: str  # whose game it is from

    @property
    def best(self) -> tuple[bool, ...]:
        """[7]: the perfect moves."""
        most = max(worth for worth in self.worths if worth is not None)
        return tuple(worth == most for worth in self.worths)

    @property
    def has_choice(self) -> bool:
        """Whether a move can be wrong here."""
        return len({worth for worth in self.worths if worth is not None}) > 1


def read(path: Path) -> list[Position]:
    """The solved positions of a file; none if there is no such file."""
    try:
        content = json.loads(path.read_text("utf-8"))
        return [Position(p["columns"], tuple(p["worths"]), p["source"]) for p in content["positions"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TengenError(f"{path}: no file of solved positions: {error}") from None


def write(path: Path, positions: Iterable[Position]) -> None:
    lines = ",\n".join(json.dumps(position._asdict()) for position in positions)
    files.write_bytes(path, f'{{"game": "connect_four", "positions": [\n{lines}\n]}}\n'.encode())


def stones(columns: Iterable[int]) -> tuple[int, int]:
    """(mine, theirs) after these columns, from 0."""
    mine, theirs = 0, 0
    for column in columns:
        mine, theirs = theirs, mine | solver.moves(mine, theirs)[column]
    return mine, theirs


def sample(game: Game, player: Player, count: int, seed: int) -> list[str]:
    """One position each of `count` games of a player against itself, all different."""
    rng = np.random.default_rng(seed)
    found: dict[tuple[int, int], str] = {}
    for attempt in range(20):
        settings = MatchSettings(games=max(2, count // 2 * 2), opening_moves=2)
        match = play(game, player, player, jax.random.key(seed * 1000 + attempt), settings)
        for row, length in zip(match.actions, match.length, strict=True):
            if length > FIRST_PLY and len(found) < count:
                columns = row[: rng.integers(FIRST_PLY, length)].tolist()
                found.setdefault(stones(columns), "".join(str(column + 1) for column in columns))
        if len(found) == count:
            return list(found.values())
    raise TengenError(f"{player.name}: its games have not {count} different positions from ply {FIRST_PLY} on")


def solve(path: Path, wanted: Iterable[tuple[str, str]]) -> None:
    """Solve (columns, source) that the file does not hold yet, and add them to it."""
    positions = read(path)
    known = {position.columns for position in positions}
    todo = [(columns, source) for columns, source in wanted if columns not in known]
    todo.sort(key=lambda item: -len(item[0]))  # late ones are quick
    memory, started, saved = solver.Solver(), time.monotonic(), time.monotonic()
    for number, (columns, source) in enumerate(todo, 1):
        worths = memory.worths(*stones(int(c) - 1 for c in columns))
        positions.append(Position(columns, tuple(worths.get(column) for column in range(7)), source))
        if time.monotonic() > saved + 20 or number == len(todo):
            saved = time.monotonic()
            write(path, positions)
            speed = memory.nodes / (saved - started)
            print(
                f"solved {number} of {len(todo)}, now at ply {len(columns)}, {saved - started:.0f} s, {speed:,.0f}/s",
                flush=True,
            )


def states_of(game: Game, positions: list[Position]) -> Any:
    """[N, ...] the positions."""
    rows = np.full((len(positions), game.max_moves), -1, np.int32)
    for row, position in zip(rows, positions, strict=True):
        row[: len(position.columns)] = [int(c) - 1 for c in position.columns]

    @jax.jit
    def replay(rows: Any) -> Any:
        keys = jax.random.split(jax.random.key(0), len(positions))

        def move(ply: Any, states: Any) -> Any:
            return game.step_and_look(states, jnp.maximum(rows[:, ply], 0), rows[:, ply] < 0)[0]

        return jax.lax.fori_loop(0, game.max_moves, move, jax.vmap(game.init)(keys))

    return replay(rows)


def measure(
    game: Game, evaluate: Evaluate, params: Any, positions: list[Position], settings: SearchSettings
) -> dict[str, Any]:
    """{player: Bool[N]}: where the raw policy, and the search with these settings, play a perfect move."""
    asked = {
        "raw policy": players.policy("raw policy", evaluate, game, params),
        f"{settings.simulations} simulations": players.network("search", evaluate, game, settings, params),
    }
    states, which = states_of(game, positions), jnp.ones(len(positions), bool)
    best = np.array([position.best for position in positions])
    found = {}
    for name, player in asked.items():
        rule = jax.jit(player.rule)
        actions = np.asarray(rule(params, jax.random.key(0), states, which))
        found[name] = best[np.arange(len(best)), actions]
    return found


def report(positions: list[Position], perfect: dict[str, Any]) -> None:
    """Print shares, over all positions and over groups of them."""
    ply = np.array([len(position.columns) for position in positions])
    source = np.array([position.source for position in positions])
    groups = {"all positions": np.ones(len(ply), bool)}
    groups["where a move can be wrong"] = np.array([position.has_choice for position in positions])
    groups |= {f"from games of {name}": source == name for name in dict.fromkeys(source.tolist())}
    groups |= {f"ply {first} to {last}": (ply >= first) & (ply <= last) for first, last in BANDS}
    print(f"{'':28} {'positions':>9}" + "".join(f" {name:>24}" for name in perfect))
    for group, inside in groups.items():
        cells = ""
        for hits in perfect.values():
            share, count = (float(hits[inside].mean()), int(inside.sum())) if inside.any() else (0.0, 0)
            low, high = wilson(share, count) if count else (0.0, 0.0)
            cells += f" {100 * share:>9.1f} % ({100 * low:.1f}-{100 * high:.1f})" if count else f" {'-':>24}"
        print(f"{group:28} {int(inside.sum()):>9}{cells}")


def main() -> int:
    args = _arguments()
    game = games.make("connect_four")
    try:
        if args.command == "solve":
            half = args.count // 2
            plain = players.mcts(args.playouts, game)
            wanted = [
                (columns, "random") for columns in sample(game, players.random(game), args.count - half, args.seed)
            ]
            wanted += [(columns, plain.name) for columns in sample(game, plain, half, args.seed)]
            solve(args.positions, wanted)
            return 0
        found = networks.find(args.net)
        game = game.for_network(found.saved.options)
        evaluate, params = saved(found.path, game)
        if args.own:
            drawn = players.policy("the network", evaluate, game, params, temperature=1.0)
            solve(args.positions, [(columns, drawn.name) for columns in sample(game, drawn, args.own, args.seed)])
        positions = read(args.positions)
        if not positions:
            raise TengenError(f"{args.positions}: no solved positions; make some with the command solve")
        settings = players.strongest(SearchSettings(), args.simulations)
        report(positions, measure(game, evaluate, params, positions, settings))
    except TengenError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Share of perfect moves in connect four.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("measure", "solve"):
        command = commands.add_parser(name)
        command.add_argument("--positions", type=Path, default=SHIPPED, help="the file of solved positions")
        command.add_argument("--seed", type=int, default=0)
        if name == "measure":
            command.add_argument("net", type=Path, help="a network that Tengen saved, or a run")
            command.add_argument("--simulations", type=int, default=64)
            command.add_argument("--own", type=int, default=0, help="add so many positions of the network's own games")
        else:
            command.add_argument("--count", type=int, default=1000, help="how many positions the file shall get")
            command.add_argument("--playouts", type=int, default=50, help="of plain MCTS, per move")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
