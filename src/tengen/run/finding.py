"""The network that a person names: its folder or file, or a run, whose newest accepted one is meant."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tengen.data.store.store import inside
from tengen.errors import TengenError
from tengen.nets import saving
from tengen.nets.specs import FILE_NAME
from tengen.run import registry

_ROLES = ("host", "agent")


@dataclass(frozen=True)
class FoundNetwork:
    """A network on disk."""

    path: Path  # its folder, or the file itself
    name: str  # for people, and for results
    saved: saving.NetworkFile


def find(text: str | Path, role: str | None = None) -> FoundNetwork:
    """The network at a path; `role`: of a run, the newest that can play it.

    TengenError says what is there instead, or that a run has none yet, or that the network learned another role.
    """
    path = Path(text)
    if path.is_dir() and not (path / FILE_NAME).exists():
        return _newest(path, role)
    if not path.exists():
        raise TengenError(f"{path}: there is no such file or folder; expected a network or a run")
    if path.is_file() and path.suffix != ".safetensors":
        raise TengenError(f"{path}: not a network, whose file ends in .safetensors; name that, its folder, or a run")
    found = _found(path)
    if not _plays(found, role):
        raise TengenError(f"{path}: a network that learned to play the {found.saved.info['role']}, not the {role}")
    return found


def networks(run: Path, role: str | None = None) -> list[FoundNetwork]:
    """All whole networks of a run, in the order in which they were saved; other things in the folder are left out.

    `role`: those that can play it. A trainer of roles saves a network for each, self-play one for all.
    """
    judged = {entry.name: entry.number for entry in registry.accepted(run)}
    found = [
        (_order(network, judged.get(network.path.name, -1)), network)
        for network in survey(run)[0]
        if _plays(network, role)
    ]
    return [network for _, network in sorted(found, key=lambda pair: (pair[0], pair[1].name))]


def survey(run: Path, folders: Iterable[str] = (registry.ACCEPTED,)) -> tuple[list[FoundNetwork], list[str]]:
    """The whole networks in these folders of a run; and what is wrong with the damaged ones, in words."""
    found: list[FoundNetwork] = []
    notes: list[str] = []
    for path in sorted(path for folder in folders for path in inside(run / folder)):
        if (path / FILE_NAME).exists() and not path.name.startswith("."):
            try:
                found.append(_found(path))
            except TengenError as error:  # the others are still there
                notes.append(str(error))
    return found, notes


def _order(network: FoundNetwork, number: int) -> tuple[float, ...]:
    """A ring counts what it accepts; the fused loop says when it saved."""
    seconds, step = network.saved.info.get("seconds"), network.saved.info.get("step")
    return tuple(float(x) if isinstance(x, int | float) else -1.0 for x in (number, seconds, step))


def _plays(network: FoundNetwork, role: str | None) -> bool:
    """Whether it learned that role, or all of them (a ring's networks have roles of another kind)."""
    learned = network.saved.info.get("role")
    return role is None or learned not in _ROLES or learned == role


def _newest(path: Path, role: str | None) -> FoundNetwork:
    all_of_it = networks(path, role)
    if all_of_it:
        return all_of_it[-1]
    if role is not None and networks(path):
        raise TengenError(f"{path}: a run without a network that plays the {role}, who does not learn there")
    if (path / "config.yaml").exists():
        raise TengenError(f"{path}: a run without a network so far; let it go on, or name a network's folder")
    raise TengenError(f"{path}: neither a network (a folder with {FILE_NAME}) nor a run (a folder with config.yaml)")


def _found(path: Path) -> FoundNetwork:
    named = path.parent if path.name == FILE_NAME else path
    return FoundNetwork(path, named.resolve().name.removesuffix(".safetensors"), saving.read(path))
