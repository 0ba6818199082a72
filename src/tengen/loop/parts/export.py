"""The export as a part: from a trainer's averaged weights to a network that others can use.

A trainer leaves its weights in RUN/train/<name>/export/<network>/. The export reads them back, tries the network, and
writes it to a folder together with how it was made: in RUN/candidates for the gate, in RUN/models if there is no gate,
or in RUN/extra for trainers whose networks do not play. Then the weights that the trainer left are removed.
"""

import contextlib
import json
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from tengen import files, jax_setup, nets
from tengen.config import load as load_config
from tengen.config import provenance
from tengen.config.rendering import render
from tengen.config.sections import Config
from tengen.config.source import RUN_FILE
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.interop.katago import base as katago
from tengen.interop.lc0 import exchange as lc0
from tengen.loop.parts.running import Say
from tengen.nets import saving
from tengen.run import first_network, networks
from tengen.run.part import Part, Progress, Stop, waiting
from tengen.train.alpha_zero import AlphaZeroConfig, AlphaZeroTrainer
from tengen.train.checkpoints import Checkpoints

PENDING = "export"  # the folder in a trainer's
MADE = "made.json"
_POSITIONS = 8  # that a network is tried on


def submit(folder: Path, name: str, net: nets.Network, game: Game, facts: Mapping[str, Any]) -> None:
    """Submit the weights of a trainer for export; `facts` (JSON values) describe how they were made."""
    files.write_folder(folder / PENDING / name, lambda place: saving.save(net, place, game, facts))


def pending(folder: Path) -> list[Path]:
    """Networks that the trainer with this folder has submitted and that wait for export."""
    return [path for path in files.inside(folder / PENDING) if networks.parse(path.name)]


def clean(folder: Path) -> None:
    """Remove what a killed trainer has left half-written; no other process writes there."""
    files.remove_parts([folder / PENDING], older_than=0)


def submit_checkpoint(base: Path, trainer: str) -> Path:
    """Submit the averaged weights of a trainer's newest checkpoint for export."""
    folder = base / "train" / trainer
    if not (folder / RUN_FILE).exists():
        raise TengenError(f"{folder}: no trainer of that name has been here")
    config = load_config(folder / RUN_FILE)
    trained = AlphaZeroTrainer(AlphaZeroConfig.of(first_network.local(config, base, trainer)))
    with Checkpoints(folder, config.train.checkpoints, read_only=True) as checkpoints:  # the trainer may be at work
        resumed = trained.resume(checkpoints)
    if resumed is None:
        raise TengenError(f"{folder}: there is no checkpoint yet")
    found, _ = resumed
    name = networks.name_of(config.run.name, trainer, trained.samples, trained.bucket.rows)
    role = found.get("ring", {}).get("role", "main" if trainer == "main" else "extra")
    facts = {"run": config.run.name, "trainer": trainer, "role": "main" if role == "main" else "extra"}
    facts |= {"steps": trained.step, "samples": trained.samples, "rows": trained.bucket.rows}
    if networks.known(base, name) is None:
        submit(folder, name, trained.network(), trained.config.game, facts)
    return folder / PENDING / name


class ExportPart(Part):
    """Exports for all trainers, or for the one with that name."""

    kind = "export"

    def __init__(self, config: Config, base: Path, stop: Stop, say: Say, *, name: str | None = None) -> None:
        self.name = name or "all"
        self._config, self._base, self._stop, self._say, self._trainer = config, base, stop, say, name
        self._game = config.game.make()
        self._bad: set[Path] = set()
        self.exported = 0

    def change(self, config: Config) -> None:
        self._config = config

    def run_once(self) -> Progress:
        """Export one network, if one waits, unless `gate.most_waiting` candidates already wait for the gate."""
        most = self._config.gate.most_waiting
        full = self._config.gate.kind != "none" and len(networks.candidates(self._base)) >= most
        for left in self._waiting():
            if full and self._is_candidate(left):
                continue
            try:
                made = self._export(left)
            except TengenError as error:
                if not left.exists():  # another process has exported it
                    continue
                if not _is_bad(left, self._game):
                    raise
                self._bad.add(left)
                aside = ""
                with contextlib.suppress(OSError):
                    aside = f" ({files.set_aside(left, str(error))})"
                self._say(f"set aside, since it cannot be exported: {error}{aside}")
                continue
            self.exported += 1
            return Progress(f"exported {made}", event=True, figures={"exported": self.exported, "network": made.name})
        if full:
            words = f"the gate: {most:,} candidates wait for it, which is gate.most_waiting"
            return waiting(words, exported=self.exported)
        who = f"trainer {self._trainer}" if self._trainer else "a trainer"
        return waiting(f"{who} to end an epoch that is exported", exported=self.exported)

    def _is_candidate(self, left: Path) -> bool:
        """Whether this would go to the gate. Weights that cannot be read would not: they are set aside."""
        try:
            return self._place(saving.read(left).info.get("role")) == networks.CANDIDATES
        except TengenError:
            return False

    def _waiting(self) -> list[Path]:
        trainers = [path for path in files.inside(self._base / "train") if self._trainer in (None, path.name)]
        left = [path for trainer in trainers if trainer.is_dir() for path in pending(trainer)]
        good = [path for path in left if path not in self._bad]
        return sorted(good, key=lambda path: (networks.parse(path.name), path))  # the least trained first

    def _export(self, left: Path) -> Path:
        saved = saving.read(left)
        facts, name = dict(saved.info), left.name
        there = networks.known(self._base, name)
        if there is None:
            net = saving.load(left, self._game, dtype="float32")
            check(net, self._game, left)
            target = self._base / self._place(facts.get("role")) / name
            made_with = render(self._config)
            with contextlib.suppress(OSError, UnicodeDecodeError):
                made_with = files.read_text(left.parent.parent / RUN_FILE)  # of the trainer
            if note := write(self._base, target, net, self._game, facts, made_with, "this run has no gate"):
                self._say(note)
            there = target
        shutil.rmtree(left, ignore_errors=True)
        return there

    def _place(self, role: object) -> str:
        if role == "extra":
            return networks.EXTRA
        return networks.ACCEPTED if self._config.gate.kind == "none" else networks.CANDIDATES


def write(
    base: Path, target: Path, net: nets.Network, game: Game, facts: Mapping[str, Any], made_with: str, why: str
) -> str:
    """Write the folder of a network with how it was made; one in RUN/models is accepted, for the reason `why`.

    In a directory shared with KataGo, a file for KataGo is written too; returns why, if that is not possible.
    """
    notes = []

    def fill(folder: Path) -> None:
        info = _info(facts)
        saving.save(net, folder, game, info)
        lc0.write_beside(net, folder, info["step"])
        notes.append(katago.add_model(base, folder, net, game, target.name))
        about = {"schema": 1, **facts, "code": list(provenance.lines()), "config": made_with}
        files.write_bytes(folder / MADE, json.dumps(about, indent=1).encode())
        if target.parent.name == networks.ACCEPTED:
            verdict = {"accepted": True, "number": networks.next_number(base), "why": why}
            networks.write_verdict(networks.NetworkEntry(folder, "", 0, 0), verdict)

    files.write_folder(target, fill)
    return notes[-1]


def _info(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The header of the network's file; `step` and `seconds` as in files of the fused loop."""
    kept = ("run", "trainer", "role", "samples", "rows", "epoch")
    steps, seconds = facts.get("steps"), facts.get("seconds")
    return {name: facts[name] for name in kept if name in facts} | {
        "step": steps if type(steps) is int else 0,
        "seconds": seconds if isinstance(seconds, int | float) else 0.0,
    }


def check(net: nets.Network, game: Game, left: Path) -> None:
    """TengenError unless the network, folded as players use it, gives the same finite numbers as the trained one."""
    graph, state = nnx.split(net)
    with jax.default_device(jax_setup.cpu()):  # for which compiling is faster
        one, other = _both(game, graph, jax.device_get(state))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        if not bool(jnp.isfinite(a).all()) or not np.allclose(a, b, rtol=1e-2, atol=1e-2):
            raise TengenError(f"{left}: the network gives no numbers, or others when it is folded")


@partial(jax.jit, static_argnums=(0, 1))
def _both(game: Game, graph: Any, state: Any) -> tuple[Any, Any]:
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), _POSITIONS))
    seen = jax.vmap(game.look)(states).observation
    trained = nnx.merge(graph, state)
    return trained(seen.planes, seen.scalars), nets.fold(trained)(seen.planes, seen.scalars)


def _is_bad(left: Path, game: Game) -> bool:
    """Whether the weights are at fault, not the disk."""
    try:
        check(saving.load(left, game, dtype="float32"), game, left)
    except TengenError:
        return True
    return False
