"""Whether a run is too much for a CPU, and what to run there instead, judged by its configuration before compiling.

The measure is the time that self-play takes until learning begins, roughly, from the size of the network and the number
of simulations; `tengen estimate` measures it.
"""

from collections.abc import Iterable

from tengen.config.sections import Config
from tengen.nets.counting import operations
from tengen.words import counted, duration, program

_SPEED = 2e10  # operations per second of a core, roughly: 1.3e10 for b3c32, 5.5e10 for b6c96
_LONGEST = 600.0  # seconds until learning begins, on a machine that is fast enough for a run


def seconds_until_learning(config: Config, cores: int) -> float:
    """Roughly how long this many cores of a CPU play until learning can begin."""
    game = config.game.make()
    looks = operations(config.net.architecture(), game)
    play = config.selfplay
    evaluations = play.full_share * config.search.simulations + (1 - play.full_share) * play.cheap_simulations
    rows = 1.0 if play.cheap_weight else play.full_share  # of each move
    return config.data.first_rows * evaluations / rows * looks / (_SPEED * cores)


def is_too_much(config: Config, cores: int) -> bool:
    """Whether the run is a job for a GPU."""
    return seconds_until_learning(config, cores) > _LONGEST


def advice(config: Config, cores: int, known: Iterable[tuple[str, Config]]) -> str:
    """The message for users who start this run on a CPU; `known` are configurations to choose from, by name."""
    long = duration(seconds_until_learning(config, cores))
    fitting = [(name, other) for name, other in known if not (name.endswith("_gpu") or is_too_much(other, cores))]
    kind = type(config.game.make())
    alike = [name for name, other in fitting if isinstance(other.game.make(), kind)]
    instead = alike or [name for name, _ in fitting]
    return "\n".join(
        (
            f"{config.run.name} is a job for a GPU, and JAX finds none here: on {counted(cores, 'CPU core')} "
            f"self-play would take about {long} before learning begins.",
            *([f"What suits a CPU: {', '.join(f'{program()} run {name}' for name in instead)}"] if instead else []),
            "This run goes on all the same; Ctrl-C stops it, and `tengen estimate` measures how long it will take.",
        )
    )
