"""A directory that Tengen and KataGo share: KataGo's selfplay/<network>/tdata and models/ are where Tengen's are."""

import contextlib
from pathlib import Path
from typing import NamedTuple

from tengen import files
from tengen.data.format.katago import FOLDER
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.interop.katago import model_file
from tengen.interop.katago.network import from_katago, to_katago
from tengen.nets.network import Network
from tengen.nets.specs import FILE_NAME, Dtype

MODEL = "model.bin.gz"  # KataGo names such a network after its folder
_ENDINGS = (".bin.gz", ".bin")


def is_shared(base: Path) -> bool:
    """Whether there are, or will be, rows of KataGo's format in this run."""
    return any((folder / FOLDER).is_dir() for folder in files.inside(base / "selfplay"))


def add_model(base: Path, folder: Path, net: Network, game: Game, name: str) -> str:
    """In a shared directory, write the network beside Tengen's own file of it, for KataGo's self-play.

    Returns why it cannot be written, if KataGo cannot compute such a network.
    """
    if not is_shared(base):
        return ""
    try:
        model = to_katago(net, game, name)
    except TengenError as error:
        return f"not written for KataGo: {error}"
    model_file.write(model, folder / MODEL)
    return ""


class ModelFile(NamedTuple):
    """A network of KataGo on disk."""

    changed: int  # in ns
    name: str
    path: Path


def newest_model(models: Path) -> ModelFile | None:
    """The newest network, by its time of change, that KataGo's trainer put into this folder."""
    found: list[ModelFile] = []
    for path in models.rglob("*.bin*") if models.is_dir() else ():
        if path.name.endswith(_ENDINGS) and not (path.parent / FILE_NAME).exists():
            name = path.parent.name if path.name.removesuffix(".gz") == "model.bin" else path.name.partition(".bin")[0]
            with contextlib.suppress(OSError):
                found.append(ModelFile(path.stat().st_mtime_ns, name, path))
    return max(found, default=None)


def load_model(path: Path, game: Game, dtype: Dtype) -> Network:
    """A network of KataGo. TengenError if it cannot be read, or does not fit the game."""
    try:
        return from_katago(model_file.read(path), game, dtype)
    except TengenError as error:
        words = str(error)
        raise TengenError(words if str(path) in words else f"{path}: {words}") from error
