"""A chess network at the standard input and output."""

import sys

import tengen
from tengen.config.settings.engine import EngineSettings, PlaySettings
from tengen.engine.gtp.input import standard_input
from tengen.engine.uci.position import UciPosition
from tengen.engine.uci.session import UciSession
from tengen.errors import TengenError
from tengen.run import networks

GAME = "pgx:chess"


def about(found: networks.FoundNetwork) -> list[str]:
    """What the engine says that it is."""
    return [f"id name Tengen {tengen.__version__} {found.name}", "id author the authors of Tengen"]


def find(net: str) -> networks.FoundNetwork:
    """The chess network that a person names. TengenError if it plays another game."""
    found = networks.find(net)
    if found.saved.game != GAME:
        raise TengenError(
            f"{net}: a network for {found.saved.game}; UCI is for chess ({GAME}) alone, this one plays by "
            f"`tengen gtp {net}`"
        )
    return found


def make(found: networks.FoundNetwork, settings: EngineSettings) -> UciPosition:
    """The engine, compiled."""
    from tengen.engine.engine import Engine

    print(f"{found.name}: compiling", file=sys.stderr, flush=True)
    engine = Engine(found, settings=settings)
    engine.warm_up()
    print("ready", file=sys.stderr, flush=True)
    return UciPosition(engine)


def serve(net: str, play: PlaySettings, settings: EngineSettings) -> None:
    """Answer what comes in."""
    found = find(net)

    def write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    UciSession(about(found), lambda: make(found, settings), play, standard_input(), write).run()
