"""The networks of a run: where they are, what they are called, in which order they were made, and which can be used.

RUN/models holds the networks that play. In a run of several parts, RUN/candidates holds those that wait for the gate,
RUN/rejected those that lost there, and RUN/extra those that were never meant to play. A network is a folder with its
parameters in FILE_NAME, which appears by renaming. In a run of several parts it is called
`<run>-<trainer>-s<samples>-d<rows>`, and its verdict is written into the folder before that moves.
"""

import contextlib
import math
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tengen import files, nets, schema
from tengen.config.source import RUN_FILE
from tengen.errors import TengenError
from tengen.nets.specs import FILE_NAME
from tengen.run import shipped

if TYPE_CHECKING:
    from tengen.games.core import Game
    from tengen.nets.evaluators import Evaluator
    from tengen.nets.saving import NetworkFile

CANDIDATES, ACCEPTED, REJECTED, EXTRA = "candidates", "models", "rejected", "extra"
VERDICT = "verdict.json"
RANDOM = "random"
"""Stands for a network's name while games are played without one."""
UNTRAINED = "untrained"
"""The name of the network that a run begins with, which is rated but not saved."""
# Names of imported networks may lack the run.
_NAME = re.compile(r"(?:([A-Za-z0-9_-]{1,60})-)?([A-Za-z0-9_]{1,40})-s(\d{1,15})-d(\d{1,15})")
_ROLES = ("host", "agent")


@dataclass(frozen=True)
class NetworkEntry:
    """A network of a run in parts, as its name and its verdict describe it."""

    path: Path
    trainer: str
    samples: int
    rows: int
    number: int = -1  # in the order of acceptance; -1 without a verdict
    accepted: bool | None = None  # by its verdict

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True)
class FoundNetwork:
    path: Path  # its folder, or the file itself
    name: str
    saved: "NetworkFile"


@dataclass(frozen=True)
class _Verdict:
    schema: Literal[1]
    accepted: bool


def name_of(run: str, trainer: str, samples: int, rows: int) -> str:
    return f"{run}-{trainer}-s{samples}-d{rows}"


def parse(name: str) -> tuple[int, str] | None:
    """Samples and trainer of the network with that name; None for any other name."""
    match = _NAME.fullmatch(name)
    return (int(match[3]), match[2]) if match else None


def parse_counts(name: str) -> tuple[int, int] | None:
    """Samples and rows that the network with that name was trained on; None for any other name."""
    match = _NAME.fullmatch(name)
    return (int(match[3]), int(match[4])) if match else None


def candidates(base: Path) -> list[NetworkEntry]:
    """The networks that wait for the gate, in the order of training, and folders of damaged ones without a file."""
    return _entries(base / CANDIDATES, whole=False)


def accepted(base: Path) -> list[NetworkEntry]:
    """The accepted networks, in the order of acceptance."""
    return sorted(_entries(base / ACCEPTED), key=lambda entry: entry.number)


def rejected(base: Path) -> list[NetworkEntry]:
    """The rejected networks, in the order of training."""
    return _entries(base / REJECTED)


def extra(base: Path) -> list[NetworkEntry]:
    """Networks that were never meant to play, in the order of training."""
    return _entries(base / EXTRA)


def newest(base: Path) -> NetworkEntry | None:
    return next(reversed(accepted(base)), None)


def misnamed(base: Path) -> list[Path]:
    """Networks that lie among the accepted ones, under names that self-play in parts passes over."""
    return [path for path in files.inside(base / ACCEPTED) if is_there(path) and not _NAME.fullmatch(path.name)]


def known(base: Path, name: str, folders: Iterable[str] = (CANDIDATES, ACCEPTED, REJECTED, EXTRA)) -> Path | None:
    """Where the network of that name is now."""
    return next((base / place / name for place in folders if (base / place / name / FILE_NAME).exists()), None)


def is_there(folder: Path) -> bool:
    """Whether the folder is that of a network."""
    return os.path.exists(os.path.join(folder, FILE_NAME))  # there may be thousands


def is_judged(base: Path, entry: NetworkEntry) -> bool:
    """Whether the gate has already moved a network of that name, so that this one is a copy."""
    return known(base, entry.name, (ACCEPTED, REJECTED)) is not None


def write_verdict(entry: NetworkEntry, about: Mapping[str, Any]) -> None:
    """Write the verdict on a candidate; `accepted` is one of its keys."""
    schema.write_json(entry.path / VERDICT, {"schema": 1, **about})


def move(base: Path, entry: NetworkEntry) -> Path:
    """Move a candidate to the folder of its verdict. If a copy is there already, that one stays."""
    target = base / (ACCEPTED if verdict(entry.path)["accepted"] else REJECTED) / entry.name
    with files.writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if (target / FILE_NAME).exists():
            shutil.rmtree(entry.path)
        else:
            if target.exists():  # something else of that name
                target.rename(target.with_name(f"{target.name}.{secrets.token_hex(4)}.corrupt"))
            files.move_folder(entry.path, target)
    return target


def drop(entry: NetworkEntry) -> None:
    """Remove a candidate that `is_judged`; it is still judged if this process is killed in between."""
    with files.writing(entry.path):
        shutil.rmtree(entry.path)


def next_number(base: Path) -> int:
    return 1 + max((entry.number for entry in accepted(base)), default=0)


def verdict(folder: Path) -> dict[str, Any]:
    """The verdict on a network; empty if there is none, or if it cannot be read."""
    with contextlib.suppress(TengenError):
        found = schema.read_json(dict[str, Any], folder / VERDICT)
        schema.from_data(_Verdict, found)
        return found
    return {}


def _entries(folder: Path, whole: bool = True) -> list[NetworkEntry]:
    """The networks in a folder whose names are those of parts, in the order of training."""
    found = []
    for path in files.inside(folder):
        match = _NAME.fullmatch(path.name)
        if match and ((path / FILE_NAME).exists() if whole else path.is_dir()):
            about = verdict(path)
            number = about.get("number")
            number = number if type(number) is int and number >= 0 else -1
            found.append(NetworkEntry(path, match[2], int(match[3]), int(match[4]), number, about.get("accepted")))
    return sorted(found, key=lambda entry: (entry.samples, entry.name))


def find(text: str | Path, role: str | None = None) -> FoundNetwork:
    """The network at a path: its folder, its file, or a run, whose newest network (that plays `role`) is meant.

    Where nothing has that path, it may be the name of a network that comes with Tengen. Raises TengenError if something
    else is there, the run has no network yet, or the network learned another role.
    """
    path = Path(text)
    if path.is_dir() and not (path / FILE_NAME).exists():
        return _newest_found(path, role)
    if not path.exists():
        if (file := shipped.path(str(text))) is not None:
            return _found(file)
        known = ", ".join(shipped.names())
        raise TengenError(f"{path}: there is no such file or folder; expected a network or a run, or one of {known}")
    if path.is_file() and path.suffix != ".safetensors":
        raise TengenError(f"{path}: not a network, whose file ends in .safetensors; name that, its folder, or a run")
    found = _found(path)
    if not _plays(found, role):
        raise TengenError(f"{path}: a network that learned to play the {found.saved.info['role']}, not the {role}")
    return found


def find_network(text: str, game: str = "") -> FoundNetwork:
    """As `find`, or a model of another framework and its game: `python:MODULE:FUNCTION@GAME`, by default `game`."""
    from tengen.nets import models, saving

    if not models.is_model(text):
        return find(text)
    name, _, named = text.partition("@")
    if not (named or game):
        raise TengenError(f"{text}: what does it play? Say so at its end, such as {name}@go9")
    made = make_game(named or game)
    spec = nets.Spec.custom(name.partition(":")[2])
    return FoundNetwork(Path(name), name, saving.NetworkFile(spec, made.name, made.version, asdict(made.options), {}))


def make_game(name: str, options: Mapping[str, Any] | None = None) -> "Game":
    """A game by its own name or that of a configuration, with some options changed."""
    from tengen import config, games

    options = options or {}
    if games.is_name(name):
        return games.make(name, **options)
    try:
        section = config.load_any(name).game
    except TengenError as error:
        known = ", ".join((*games.names(), "pgx:NAME", "package.module:Class"))
        raise TengenError(f"--game {name}: neither a game ({known}) nor a configuration: {error}") from None
    if section is None:
        raise TengenError(f"--game {name}: this configuration names no game, because its program supplies it")
    return games.make(section.name, **{**asdict(section.options), **options})


def exists(text: str) -> bool:
    """Whether something has that path, or a network that comes with Tengen has that name."""
    return os.path.exists(text) or text in shipped.names()


def usable(run: Path, role: str | None = None) -> list[FoundNetwork]:
    """All readable networks in RUN/models (that can play `role`), in the order in which they were saved.

    A trainer of roles saves a network for each role, self-play one for all roles.
    """
    judged = {entry.name: entry.number for entry in accepted(run)}

    def order(network: FoundNetwork) -> tuple[Any, ...]:
        """The gate numbers what it accepts; the fused loop notes when it saved."""
        info = network.saved.info
        times = (judged.get(network.path.name, -1), info.get("seconds"), info.get("step"))
        return (*(float(x) if isinstance(x, int | float) else -1.0 for x in times), network.name)

    return sorted((network for network in survey(run)[0] if _plays(network, role)), key=order)


def survey(run: Path, folders: Iterable[str] = (ACCEPTED,)) -> tuple[list[FoundNetwork], list[str]]:
    """The readable networks in these folders of a run, and a message about each other folder in them."""
    found: list[FoundNetwork] = []
    problems: list[str] = []
    for path in sorted(path for folder in folders for path in files.inside(run / folder)):
        if path.is_dir() and not path.name.startswith(".") and not path.name.endswith(".corrupt"):
            try:
                found.append(_found(path))
            except TengenError as error:  # the others can still be used
                problems.append(str(error))
    return found, problems


def _plays(network: FoundNetwork, role: str | None) -> bool:
    """Whether it learned that role or all roles. (Other values of `role` are names of trainers.)"""
    learned = network.saved.info.get("role")
    return role is None or learned not in _ROLES or learned == role


def _newest_found(path: Path, role: str | None) -> FoundNetwork:
    found = usable(path, role)
    if found:
        return found[-1]
    if role is not None and usable(path):
        raise TengenError(f"{path}: a run without a network that plays the {role}, who does not learn there")
    if (path / RUN_FILE).exists():
        raise TengenError(f"{path}: a run without a network so far; let it go on, or name a network's folder")
    raise TengenError(f"{path}: neither a network (a folder with {FILE_NAME}) nor a run (a folder with config.yaml)")


def _found(path: Path) -> FoundNetwork:
    from tengen.nets import saving  # which needs JAX, as nothing above does

    named = path.parent if path.name == FILE_NAME else path
    return FoundNetwork(path, named.resolve().name.removesuffix(".safetensors"), saving.read(path))


@dataclass(frozen=True, order=True)
class SavedNetwork:
    """A network that the run in this process has saved, in the order of saving."""

    seconds: float  # of the run, when it was saved
    step: int  # of training; may be less than before if a damaged checkpoint was set aside in between
    name: str


class RunNetworks:
    """RUN/models for the process that trains: saves networks, and loads them for matches."""

    def __init__(
        self, base: Path, game: "Game", spec: nets.Spec, dtype: nets.Dtype, others: Iterable[nets.Spec] = ()
    ) -> None:
        """`others` are the architectures of the run at other times, if its network grows; now it has `spec`."""
        self._base, self._game, self.spec, self._others = base, game, spec, tuple(others)
        self._dtype: nets.Dtype = dtype
        self.saved: list[SavedNetwork] = []
        self.notes: tuple[str, ...] = ()  # about folders that hold no network of this run
        self.look()

    @property
    def newest(self) -> SavedNetwork | None:
        return self.saved[-1] if self.saved else None

    def path(self, name: str) -> Path:
        return self._base / ACCEPTED / name

    def submit(self, net: "nets.Network", name: str, step: int, info: Mapping[str, Any]) -> None:
        """Write a candidate for the gate; `save` writes networks that play at once."""
        from tengen.nets import saving

        folder = self._base / CANDIDATES / name
        files.write_folder(folder, lambda place: saving.save(net, place, self._game, {**info, "step": step}))

    def save(self, net: "nets.Network", name: str, step: int, info: Mapping[str, Any]) -> SavedNetwork:
        """Write a network; `info` has at least the `seconds` of the run.

        In a run that once had a gate, the network gets the next number, so that it is newer than the accepted ones.
        """
        from tengen.nets import saving

        if (number := next_number(self._base)) > 1:
            folder = self.path(name)
            files.make_folder(folder)
            why = "it was saved without a gate"
            write_verdict(NetworkEntry(folder, "", 0, 0), {"accepted": True, "number": number, "why": why})
        saving.save(net, self.path(name), self._game, {**info, "step": step})
        entry = SavedNetwork(info["seconds"], step, name)
        self.saved = sorted({other.name: other for other in (*self.saved, entry)}.values())
        return entry

    def parameters(self, name: str) -> Any:
        """The folded parameters of a network for an `Evaluator`. Raises TengenError if its file cannot be used."""
        return self.load(name)[0]

    def load(self, name: str) -> tuple[Any, "Evaluator | None"]:
        """The same, and the evaluator of a network that has another architecture, because the run's network grows."""
        import jax
        from flax import nnx

        from tengen.nets import saving
        from tengen.nets.evaluators import Evaluator

        saved = saving.read(self.path(name)).spec
        spec = saved if saved in self._others else self.spec
        folded = nets.fold(saving.load(self.path(name), self._game, spec=spec, dtype=self._dtype))
        graph, state = nnx.split(folded)
        # On the device, so that it shares the compiled matches of networks that never left it.
        return jax.device_put(state, jax.local_devices()[0]), None if spec == self.spec else Evaluator(graph)

    def look(self) -> None:
        """List the folder again. The newest network in `saved` is known to have finite parameters."""
        from tengen.nets import saving

        networks, problems = survey(self._base)
        notes = [f"skipped, not a network of this run: {problem}" for problem in problems]
        found: list[SavedNetwork] = []
        for network in networks:
            step, seconds = network.saved.info.get("step"), network.saved.info.get("seconds")
            if type(step) is int and isinstance(seconds, int | float) and 0 <= seconds < math.inf:
                found.append(SavedNetwork(float(seconds), step, network.path.name))
            else:
                notes.append(f"skipped, not a network of this run: {network.path}: does not say when it was saved")
        found.sort()
        while found:  # the parameters of older ones are checked when they play
            try:
                saving.check_numbers(self.path(found[-1].name))
                break
            except TengenError as error:
                notes.append(f"skipped, it cannot play: {error}")
                found.pop()
        self.saved, self.notes = found, tuple(notes)
