"""Networks among `selfplay.opponents`, on their way to actors on nodes that do not have their files. Needs no Ray."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tengen import files
from tengen.config.sections import Config
from tengen.config.settings.selfplay import named
from tengen.games.core import Game
from tengen.nets.specs import FILE_NAME


@dataclass(frozen=True)
class SentNetwork:
    """A network, as it is sent."""

    name: str
    data: bytes  # of its file


def read(config: Config, game: Game) -> dict[str, SentNetwork]:
    """The networks that texts in `selfplay.opponents` name; fixed players need no file."""
    from tengen.match import player_spec  # which needs JAX

    found = {}
    for text in config.selfplay.opponents:
        role, name, _ = named(text)
        if (network := player_spec.parse_role(name, role, game).found) is not None:
            path = network.path if network.path.is_file() else network.path / FILE_NAME
            found[text] = SentNetwork(network.name, files.read_bytes(path))
    return found


def placed(config: Config, networks: Mapping[str, SentNetwork], folder: Path) -> Config:
    """The configuration with copies in `folder`, which are made, in place of these networks."""
    texts = list(config.selfplay.opponents)
    for number, text in enumerate(texts):
        if (network := networks.get(text)) is not None:
            place = folder / str(number) / network.name
            files.make_folder(place)
            files.write_bytes(place / FILE_NAME, network.data)
            texts[number] = f"{named(text).role}={place}:{text.rpartition(':')[2]}"
    return replace(config, selfplay=replace(config.selfplay, opponents=tuple(texts)))
