"""The boards that are played, how many games at once, and the devices or cores that play them."""

from dataclasses import asdict
from typing import Any, NamedTuple

import jax

from tengen import games, nets
from tengen.config.sections import Config
from tengen.config.settings.selfplay import SelfplaySettings, resized, size
from tengen.cores import cores
from tengen.games.core import Game
from tengen.nets.counting import operations

FEWEST_GAMES = 32  # of a lane on a CPU: networks are slow if they evaluate only a few positions at once
CORE_SPEED = 2e10  # operations per second of a core, roughly: 1.3e10 for b3c32 on an old one, 1e11 on a new one
_SIMULATION = 0.5  # seconds that one simulation of all games may take on a CPU
_MOST_LANES = 32  # of one size


class LaneBoard(NamedTuple):
    """A board size, and how many games are played on it."""

    game: Game
    games: int


def boards(game: Game, settings: SelfplaySettings) -> list[LaneBoard]:
    found = []
    for other in map(size, settings.sizes):
        smaller = games.make(game.name, **resized(asdict(game.options), other))
        found.append(LaneBoard(smaller, max(1, round(other.share * settings.games))))
    return [LaneBoard(game, max(1, settings.games - sum(board.games for board in found))), *found]


def at_once(config: Config, game: Game, spec: nets.Spec) -> int:
    """How many games this machine plays at once."""
    return on_cpu(config, game, spec, len(cores())) if jax.default_backend() == "cpu" else config.selfplay.games


def on_cpu(config: Config, game: Game, spec: nets.Spec, count: int) -> int:
    """The same for a CPU with `count` cores: as many before the network grows as after it, when the games go on."""
    net = config.net
    larger = [net.grown(times).architecture() for times in range(1, len(net.growth) + 1)]
    return games_on_cpu(config.selfplay.games, max(operations(each, game) for each in larger or [spec]), count)


def lane_devices(count: int) -> list[Any]:
    """The device of each lane for `count` games of one size: all devices, or a CPU once for each core.

    A CPU's lanes are equally large, because they share one compiled program.
    """
    devices = jax.local_devices()
    if len(devices) > 1 or devices[0].platform != "cpu":
        return devices[:count]
    most = max(min(len(cores()), count // FEWEST_GAMES, _MOST_LANES), 1)
    return devices * max(n for n in range(1, most + 1) if count % n == 0)


def games_on_cpu(games: int, operations: float, cores: int) -> int:
    """How many of `games` a CPU plays at once, if the network needs this many operations for a position.

    A CPU evaluates thousands of positions no faster than dozens, so more games at once would only make it longer until
    the first move is made and the first game ends.
    """
    step = FEWEST_GAMES * max(cores, 1)  # all cores have as many
    most = int(_SIMULATION * CORE_SPEED * max(cores, 1) / max(operations, 1))
    return min(games, max(most - most % step, step))
