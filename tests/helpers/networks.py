"""Networks that tests play with: small, and of no use but for that. One kind of engine, which compiles once."""

from pathlib import Path
from typing import Any

from flax import nnx

from tengen import games, nets
from tengen.config.settings.match import EngineSettings
from tengen.nets import saving
from tengen.run.networks import FoundNetwork, find

QUICK = EngineSettings(visits=30, leaves=2, slots=256)


def untrained(
    folder: Path, game: str, net: str = "b1c8", heads: tuple[nets.Head, ...] = (), **options: Any
) -> FoundNetwork:
    """A network that knows nothing, saved in `folder`."""
    made = games.make(game, **options)
    saving.save(nets.build(nets.spec(net, heads), made, nnx.Rngs(0)), folder, made)
    return find(folder)
