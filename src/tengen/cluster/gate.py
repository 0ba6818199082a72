"""The gate of a run on a cluster: its matches are played on another node if there is room, and else by the learner.

The learner leaves candidates in RUN/candidates, as trainers do in a run of several parts, and carries out the verdicts.
"""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen import files
from tengen.cluster.elsewhere import Elsewhere, MatchActor, place
from tengen.config.sections import Config
from tengen.errors import TengenError
from tengen.loop.parts.gate import GatePart
from tengen.loop.parts.running import pause
from tengen.nets.specs import FILE_NAME
from tengen.run import networks
from tengen.run.part import Stop

_GAMES = Path("games", "gate")
_LONGEST = 4 * 3600.0  # seconds of a match on another node
_FAILURES = 2  # of the match of a candidate on other nodes, after which the learner plays it


@dataclass(frozen=True)
class JudgedCandidate:
    """The verdict on a candidate, and the files with the games of its match."""

    name: str
    verdict: dict[str, Any]
    games: dict[str, bytes]


class GateActor(MatchActor):
    def judge(self, name: str, candidate: bytes, opponent: str, accepted: bytes) -> JudgedCandidate:
        base = self.base
        shutil.rmtree(base / _GAMES, ignore_errors=True)
        place(base / networks.REJECTED, {})
        place(base / networks.ACCEPTED, {opponent: accepted})
        place(base / networks.CANDIDATES, {name: candidate})
        while networks.known(base, name, (networks.CANDIDATES,)):
            if not (progress := self.built.run_once()).worked:
                raise TengenError(progress.words)
        folder = networks.known(base, name, (networks.ACCEPTED, networks.REJECTED))
        assert folder is not None
        games = {path.name: files.read_bytes(path) for path in files.inside(base / _GAMES)}
        return JudgedCandidate(name, networks.verdict(folder), games)

    def _build(self) -> GatePart:
        return GatePart(self._config, self.base, lambda: False, lambda text: None)


class ClusterGate:
    """The gate in the learner's process, which alone reads and writes the run directory."""

    def __init__(
        self, config: Config, base: Path, elsewhere: Elsewhere | None, stop: Stop, say: Callable[[str], None]
    ) -> None:
        """Without `elsewhere`, this process plays the matches."""
        self._config, self._base, self._elsewhere, self._say = config, base, elsewhere, say
        self._part, self._stop = GatePart(config, base, stop, say), stop
        self._sent: networks.NetworkEntry | None = None  # the candidate whose match is played elsewhere
        self._failures = Counter[str]()  # of the matches of candidates elsewhere
        self.stuck = 0  # times in a row that this process could not go on, such as for a file that cannot be read

    @property
    def busy(self) -> bool:
        """Whether a candidate waits, or plays."""
        return bool(networks.candidates(self._base))

    def look(self, patience: float = 0.0) -> bool:
        """Go on with a candidate, if there is one; whether there may be a new verdict.

        If its match is played elsewhere, that is waited for so long; otherwise a round is played.
        """
        if self._sent is not None and self._elsewhere is not None:
            found = self._elsewhere.take(patience)
            if found is None:
                return False
            sent, self._sent = self._sent, None
            if found.value is None:
                self._failures[sent.name] += 1
                self._say(f"the match of {sent.name} at the gate begins again: {found.why}")
            else:
                self._write(sent, found.value)
        waiting, accepted = networks.candidates(self._base), networks.accepted(self._base)
        first = waiting[-1 if self._config.gate.newest_first else 0] if waiting else None
        easy = not accepted or self._config.gate.kind == "none" or any(one.accepted is not None for one in waiting)
        if first is None:
            return False
        failed = self._failures[first.name] >= _FAILURES
        here = self._elsewhere is None or easy or failed or networks.is_judged(self._base, first)
        return self._judge_here(patience) if here else self._send(first, accepted[-1], patience)

    def _send(self, candidate: networks.NetworkEntry, opponent: networks.NetworkEntry, patience: float) -> bool:
        """Begin the match of a candidate elsewhere, or go on here if the file of a network cannot be read."""
        assert self._elsewhere is not None
        try:
            data = [files.read_bytes(entry.path / FILE_NAME) for entry in (candidate, opponent)]
        except TengenError:
            return self._judge_here(patience)
        self._elsewhere.begin("judge", _LONGEST, candidate.name, data[0], opponent.name, data[1])
        self._sent = candidate
        self._say(f"{candidate.name} plays at the gate on another node")
        return False

    def _judge_here(self, patience: float) -> bool:
        """Play a round in this process; whether that was possible. If it was not, wait before the next attempt."""
        progress = self._part.run_once()
        self.stuck = 0 if progress.worked else self.stuck + 1
        if self.stuck == 1:
            self._say(f"the gate waits: {progress.words}")
        if self.stuck:
            pause(patience, self._stop)
        return progress.worked

    def _write(self, entry: networks.NetworkEntry, judged: JudgedCandidate) -> None:
        """The games, then the verdict, which is carried out next."""
        for name, data in judged.games.items():
            files.make_folder(self._base / _GAMES)
            files.write_bytes(self._base / _GAMES / name, data)
        verdict = {key: value for key, value in judged.verdict.items() if key not in ("schema", "number")}
        number = {"number": networks.next_number(self._base)} if verdict["accepted"] else {}
        networks.write_verdict(entry, verdict | number)

    def change(self, config: Config) -> None:
        """Judge with other settings from now on. A match that is under way begins again if they concern it."""
        if self._elsewhere is not None and self._elsewhere.change(config, "gate"):
            self._sent = None
            self._failures.clear()
        self._config = config
        self._part.change(config)
