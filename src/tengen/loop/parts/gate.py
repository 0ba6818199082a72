"""The gate: plays each candidate against the newest accepted network, and moves it to models/ or rejected/.

A gate that is killed before it has written the verdict plays the same match again; after it, only the missing steps are
done. So nothing is judged twice.
"""

import errno
import time
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tengen.config.sections import Config
from tengen.data.records.records import file_name, save_records
from tengen.errors import TengenError
from tengen.games.players import Player
from tengen.loop.parts.running import Once, Say, is_full
from tengen.match import players, results
from tengen.match.gate_match import GateMatch
from tengen.match.results import MatchResult
from tengen.run import networks, safe_exit
from tengen.run.networks import NetworkEntry
from tengen.run.part import Part, Progress, Stop, waiting

_PASSING = {errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
_PASSING |= {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""Errors after which a file may become readable: the disk, the system or permissions are at fault, not the file."""


@dataclass
class _Running:
    entry: NetworkEntry
    newest: str  # accepted when it began
    match: GateMatch
    seconds: float = 0.0


class GatePart(Part):
    """Judges candidates, the oldest first by default. One process at a time."""

    kind = name = "gate"

    def __init__(self, config: Config, base: Path, stop: Stop, say: Say) -> None:
        self._config, self._settings, self._base = config, config.gate, base
        self._stop, self._say = stop, say
        self._game = config.game.make()
        self._search = players.strongest(config.search, config.gate.simulations)
        self._running: _Running | None = None
        self._loaded: dict[str, Player] = {}
        self._say_once = Once(say)
        self._figures = {"accepted": 0, "rejected": 0, "games": 0}
        self._waiting = 0  # candidates besides the one that plays
        self._compiled = False  # whether a match was begun before

    def change(self, config: Config) -> None:
        """Judge with other settings from now on. If they concern the current match, it begins again."""
        before = (self._settings, self._search)
        self._config, self._settings = config, config.gate
        self._search = players.strongest(config.search, config.gate.simulations)
        if before != (self._settings, self._search):
            self._running, self._loaded = None, {}

    def run_once(self) -> Progress:
        candidates = networks.candidates(self._base)
        if self._settings.newest_first:
            candidates.reverse()
        self._waiting = max(len(candidates) - 1, 0)
        for entry in candidates:
            if networks.is_judged(self._base, entry):
                networks.drop(entry)
                return self._did(f"{entry.name} was judged before: this copy of it is removed")
            if entry.accepted is not None:
                return self._settle(entry)
        self._forget_if_changed(candidates)
        if self._running is not None:
            return self._go_on(self._running)
        if candidates:
            return self._begin(candidates[0])
        if (newest := networks.newest(self._base)) is None:
            return waiting("no candidate to test: the first that comes is accepted without games", **self._figures)
        return waiting(f"no candidate to test; {newest.name} is the newest accepted network", **self._figures)

    def close(self) -> None:
        self._running, self._loaded = None, {}

    def _begin(self, entry: NetworkEntry) -> Progress:
        try:
            candidate = self._player(entry)
        except TengenError as error:
            cause = error.__cause__ or error.__context__
            if isinstance(cause, OSError) and cause.errno in _PASSING:
                return waiting(f"candidate {entry.name} cannot be read: {error}", **self._figures)
            return self._record_verdict(entry, False, f"it cannot be used: {error}")
        if self._settings.kind == "none":
            return self._record_verdict(entry, True, "gate.kind is none: every network is accepted")
        accepted = networks.accepted(self._base)
        if not accepted:
            return self._record_verdict(entry, True, "it is the first network: there is none to play against")
        opponent = self._opponent(accepted)
        if opponent is None:
            return waiting(f"none of the {len(accepted)} networks in {networks.ACCEPTED}/ can be read", **self._figures)
        key = jax.random.fold_in(jax.random.key(self._config.run.seed), np.uint32(zlib.crc32(entry.name.encode())))
        match = GateMatch(self._game, candidate, opponent, self._settings, key)
        self._running = _Running(entry, accepted[-1].name, match)
        if self._stop():
            return self._did(f"candidate {entry.name} against {opponent.name}")
        return self._go_on(self._running)

    def _go_on(self, running: _Running) -> Progress:
        match, began = running.match, time.monotonic()
        if match.decision is None:
            self.show(self._underway(running, 0))
            with safe_exit.possible():
                self._figures["games"] += match.play_round(self._stop, lambda now: self._update(running, now.finished))
            if not self._compiled and (note := match.note):  # once per process
                self._say(note)
            self._compiled = True
            running.seconds += time.monotonic() - began
        if (decision := match.decision) is None:
            return replace(self._underway(running, 0), event=True)
        if not running.entry.path.is_dir():
            self._running = None
            return self._did(f"candidate {running.entry.name} is gone")
        path = self._base / "games" / "gate" / file_name(running.entry.name, self._game.name)
        save_records(path, match.games.records(self._game, "gate-{:06d}", network=running.entry.name))
        about = match.to_dict() | {"seconds": round(running.seconds, 3)}
        return self._record_verdict(running.entry, decision.accepted, decision.why, about)

    def _update(self, running: _Running, over: int) -> None:
        self._compiled, self._waiting = True, max(len(networks.candidates(self._base)) - 1, 0)
        self.show(self._underway(running, over))

    def _underway(self, running: _Running, over: int) -> Progress:
        """The progress of the match; `over` is the number of games of this round that have ended."""
        counts, most = running.match.result, running.match.games.games
        done = counts.games + over
        words = f"candidate {running.entry.name}: {done} of {most} games, {_counted(counts)}"
        if not self._compiled:
            words = f"compiling the matches, to test candidate {running.entry.name}"
        more = f"; {self._waiting:,} more wait" if self._waiting else ""
        return Progress(words + more, done=done, of=most, figures=dict(self._figures))

    def _record_verdict(
        self, entry: NetworkEntry, accepted: bool, why: str, about: dict[str, Any] | None = None
    ) -> Progress:
        number = {"number": networks.next_number(self._base)} if accepted else {}
        about = about or {"opponent": None, "games": 0, "seconds": 0.0}
        verdict = {"accepted": accepted, **number, "kind": self._settings.kind, "why": why, **about}
        networks.write_verdict(entry, {**verdict, "settings": asdict(self._settings)})
        self._running = None
        return self._settle(entry)

    def _settle(self, entry: NetworkEntry) -> Progress:
        verdict = networks.verdict(entry.path)
        accepted, result = bool(verdict["accepted"]), _result(entry.name, verdict)
        if result is not None:
            self._add(result)
        networks.move(self._base, entry)
        self._loaded = {name: player for name, player in self._loaded.items() if accepted == (name == entry.name)}
        self._figures["accepted" if accepted else "rejected"] += 1
        counts = "" if result is None else f" {_counted(result)};"
        word = "accepted" if accepted else "rejected"
        self._say(f"{entry.name} is {word}:{counts} {verdict.get('why', '')}")
        return self._did(f"{word} {entry.name}")

    def _add(self, result: MatchResult) -> None:
        """Add a result to the ratings, once. A damaged file of results does not stop the gate."""
        path = self._base / results.OF_RUN
        try:
            if not any((known.a, known.b) == (result.a, result.b) for known in results.read(path)):
                results.append(path, result)
        except TengenError as error:
            if is_full(error):
                raise
            self._say(f"the ratings will not know of {result.a} against {result.b}: {error}")

    def _forget_if_changed(self, candidates: list[NetworkEntry]) -> None:
        """Drop a match whose candidate is gone, or whose opponent is no longer the newest network."""
        running = self._running
        if running is None:
            return
        newest = networks.newest(self._base)
        there = any(entry.name == running.entry.name for entry in candidates)
        if not there or newest is None or newest.name != running.newest:
            self._running = None

    def _opponent(self, accepted: list[NetworkEntry]) -> Player | None:
        for entry in reversed(accepted):
            try:
                return self._player(entry)
            except TengenError as error:
                self._say_once(f"an accepted network cannot play, an older one does instead: {error}")
        return None

    def _player(self, entry: NetworkEntry) -> Player:
        if entry.name not in self._loaded:
            dtype = self._config.net.dtype
            self._loaded[entry.name] = players.saved(entry.name, entry.path, self._game, self._search, dtype)
        return self._loaded[entry.name]

    def _did(self, words: str) -> Progress:
        return Progress(words, figures=dict(self._figures))


def _counted(result: MatchResult) -> str:
    return f"{result.counts} against {result.b}"


def _result(name: str, verdict: dict[str, Any]) -> MatchResult | None:
    """The result in a verdict; None if no games were played."""
    opponent, counts = verdict.get("opponent"), [verdict.get(key) for key in ("wins", "draws", "losses")]
    if not isinstance(opponent, str) or not all(type(count) is int for count in counts):
        return None
    result = MatchResult(name, opponent, *counts)  # pyright: ignore[reportArgumentType]
    return result if result.games else None
