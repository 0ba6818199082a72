"""Trained networks that come with Tengen. Their names can be used in place of a network's path: `tengen play go9`.

Matrices and kernels are stored in bfloat16, or large ones in eight bits. The header of each file also has the
configuration of its run, and tells where and how well the network was trained.
"""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from tengen import files
from tengen.config.source import RUN_FILE
from tengen.errors import TengenError

if TYPE_CHECKING:
    from tengen.nets.saving import Stored

ABOUT = "about"  # the key of `NetworkFile.info` for what people write about a network, such as its strength
CONFIGURATION = "configuration"  # the key for the text of its run's configuration
_SUFFIX = ".safetensors"


def names() -> tuple[str, ...]:
    found = (file.name for file in _folder().iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX)))


def path(name: str) -> Path | None:
    return _folder() / f"{name}{_SUFFIX}" if name in names() else None


def _folder() -> Path:
    return Path(str(resources.files("tengen.networks")))


def write(source: Path, out: Path, about: Mapping[str, str], stored: "Stored" = "bfloat16") -> Path:
    """Write the network at `source` as such a file, with the configuration of its run and the remarks `about` it."""
    from tengen.nets import saving  # which needs JAX

    if out.suffix != _SUFFIX:
        raise TengenError(f"{out}: expected a name that ends in {_SUFFIX}")
    saved = saving.read(source)
    folder = source if source.is_dir() else source.parent
    file = folder.parent.parent / RUN_FILE
    run = {CONFIGURATION: files.read_bytes(file).decode()} if file.exists() else {}
    info = {**saved.info, **run, ABOUT: {**saved.info.get(ABOUT, {}), **about}}
    return saving.save(saving.load(source), out, saved.make_game(), info, stored=stored)
