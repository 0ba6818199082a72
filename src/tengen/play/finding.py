"""The network that a person names: its folder or file, or a run, whose newest accepted one is meant."""

from dataclasses import dataclass
from pathlib import Path

from tengen.errors import TengenError
from tengen.loop.ring import models
from tengen.nets import saving
from tengen.nets.spec import FILE_NAME


@dataclass(frozen=True)
class Found:
    """A network on disk."""

    path: Path  # its folder, or the file itself
    name: str  # for people, and for results
    saved: saving.Saved


def find(text: str | Path) -> Found:
    """The network at a path. TengenError says what is there instead, or that a run has none yet."""
    path = Path(text)
    if path.is_dir() and not (path / FILE_NAME).exists():
        return _newest(path)
    if not path.exists():
        raise TengenError(f"{path}: there is no such file or folder; expected a network or a run")
    if path.is_file() and path.suffix != ".safetensors":
        raise TengenError(f"{path}: not a network, whose file ends in .safetensors; name that, its folder, or a run")
    return _found(path)


def networks(run: Path) -> list[Found]:
    """All whole networks of a run, in the order in which they were saved; other things in the folder are left out."""
    folder = run / models.ACCEPTED
    judged = {entry.name: entry.number for entry in models.accepted(run)}
    found: list[tuple[tuple[float, ...], Found]] = []
    try:
        inside = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return []
    for path in inside:
        if (path / FILE_NAME).exists():
            try:
                network = _found(path)
            except TengenError:  # damaged: the others are still there
                continue
            found.append((_order(network, judged.get(path.name, -1)), network))
    return [network for _, network in sorted(found, key=lambda pair: (pair[0], pair[1].name))]


def _order(network: Found, number: int) -> tuple[float, ...]:
    """A ring counts what it accepts; the fused loop says when it saved."""
    seconds, step = network.saved.info.get("seconds"), network.saved.info.get("step")
    return tuple(float(x) if isinstance(x, int | float) else -1.0 for x in (number, seconds, step))


def _newest(path: Path) -> Found:
    all_of_it = networks(path)
    if all_of_it:
        return all_of_it[-1]
    if (path / "config.yaml").exists():
        raise TengenError(f"{path}: a run without a network so far; let it go on, or name a network's folder")
    raise TengenError(f"{path}: neither a network (a folder with {FILE_NAME}) nor a run (a folder with config.yaml)")


def _found(path: Path) -> Found:
    named = path.parent if path.name == FILE_NAME else path
    return Found(path, named.resolve().name.removesuffix(".safetensors"), saving.read(path))
