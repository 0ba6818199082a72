"""Games against networks and analyses of positions in the browser. Needs JAX."""

import re
import secrets
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tengen.analysis import analysis, query
from tengen.config.settings.match import EngineSettings
from tengen.data.records import moves
from tengen.data.records.records import Record, RecordError, load_variations
from tengen.engine.engine import Engine, NetworkView, SearchReport
from tengen.errors import OptionError, TengenError
from tengen.games.chess import Chess
from tengen.games.core import Game
from tengen.run import networks
from tengen.web import frames, games

MOST_VISITS = 100_000
_SESSIONS = 8
SETTINGS = EngineSettings(slots=16384)
"""Of all searches, but for their visits. A smaller tree than elsewhere: there may be several."""
_SHOWN = 8  # candidates
_AHEAD = 8  # moves of an expected line
_FEN = re.compile(r"[pnbrqkPNBRQK1-8]+(/[pnbrqkPNBRQK1-8]+){4,7} [wb] .*")
_PGN = re.compile(r'\[\s*\w+\s+"|1\s*\.')
_LONGEST = 200_000  # characters of a pasted game


@dataclass
class PlaySession:
    """One game in one browser. `seat` is the user's player; None: the user moves for both."""

    engine: Engine
    seat: int | None
    visits: int
    values: list[float | None]
    closing: threading.Event  # that of the room
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    stop: threading.Event = field(default_factory=threading.Event)
    remarks: tuple[str, ...] = ()
    variations: list[dict[str, Any]] = field(default_factory=list)  # of the pasted game
    players: tuple[str, str] = ("", "")
    comments: dict[int, str] = field(default_factory=dict)  # on the moves of the pasted game, counted from 0

    def move(self, action: int) -> dict[str, Any]:
        """The user's move, and the engine's answer to it. IllegalMove if the rules forbid it."""
        self.engine.play(action)
        self.values.append(None)
        return self.go_on()

    def answer(self) -> dict[str, Any]:
        """Let the engine make the next move, whoever is to move."""
        report = self.engine.think(self.visits, stop=self.closing)
        if report.action is None:
            raise OptionError("the game is over")
        self.engine.play(report.action)
        self.values.append(round(report.value, 3))
        return self.go_on()

    def go_on(self) -> dict[str, Any]:
        """Let the engine move if it is not the user's turn."""
        waits = self.seat is None or self.engine.over or self.engine.player == self.seat
        return self.state() if waits else self.answer()

    def undo(self) -> dict[str, Any]:
        length = self.engine.last_choice(self.seat)
        if length is None:
            raise OptionError("there is nothing to take back")
        return self.goto(self.engine.actions[: length - 1])

    def goto(self, actions: Sequence[int]) -> dict[str, Any]:
        """Go to the position after these moves from the start: back, on, or into a variation. IllegalMove."""
        before = self.engine.actions
        same = next((at for at, pair in enumerate(zip(before, actions, strict=False)) if pair[0] != pair[1]), None)
        kept = min(len(before), len(actions)) if same is None else same
        if kept == len(actions):
            self.engine.rewind(kept + 1)
        else:
            self.engine.reset(self.engine.steps[0].state, actions)
        self.values = [*self.values[:kept], *[None] * (len(actions) - kept)]
        return self.state()

    def export(self) -> dict[str, str]:
        return games.exported(self._record(), "game")

    def think(self, visits: int, each: Callable[[dict[str, Any]], None]) -> None:
        """Analyse the position; `each` is called with the analysis so far, and with all of it at the end."""
        self.stop.clear()
        if self.closing.is_set():
            self.stop.set()
        engine = self.engine
        if engine.over:
            each({"done": True, "over": True})
            return
        shown = _look(engine.game, engine.state, engine.look())
        each({**shown, "done": False})
        report = engine.think(
            min(max(visits, 1), MOST_VISITS),
            stop=self.stop,
            each=lambda so_far: each({**shown, **_search(engine.game, engine.state, so_far), "done": False}),
            every=0.25,
        )
        each({**shown, **_search(engine.game, engine.state, report), "done": True})

    def _record(self) -> Record:
        names = ["you", "you"]
        if self.seat is not None:
            names[1 - self.seat] = self.engine.found.name
        players = tuple(given or name for given, name in zip(self.players, names, strict=True))
        return self.engine.record(values=tuple(self.values), players=players, network=self.engine.found.name)

    def state(self) -> dict[str, Any]:
        engine = self.engine
        legal = np.flatnonzero(engine.legal()) if not engine.over else []
        return {
            **{name: getattr(self, name) for name in ("id", "seat", "visits", "remarks", "variations", "comments")},
            "network": engine.found.name,
            "player": engine.player,
            "over": engine.over,
            "legal": [_named(engine.game, engine.state, int(action)) for action in legal],
            "record": frames.from_states(self._record(), engine.game, [step.state for step in engine.steps]),
        }


class PlayRoom:
    """All sessions. One thread at a time uses it; the oldest session ends when there are too many."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, PlaySession] = OrderedDict()
        self._looking: tuple[Path, Engine] | None = None
        self._closing = threading.Event()

    def begin(self, base: Path, network: str, seat: int | None, visits: int, text: str = "") -> dict[str, Any]:
        """Begin a game, or go on from a pasted one. TengenError says what is wrong."""
        if not 1 <= visits <= MOST_VISITS:
            raise OptionError(f"visits: expected a number from 1 to {MOST_VISITS:,}, got {visits}")
        found = networks.find(network_path(base, network))
        asked, lines = pasted(text, found.saved) if text.strip() else (query.new_game(found.saved), [])
        engine = Engine(found, asked.game, replace(SETTINGS, visits=visits))
        # Some games begin at random.
        start = asked.states()[0] if text.strip() else engine.game.init(jax.random.key(secrets.randbits(31)))
        engine.reset(start, asked.record.actions)
        session = PlaySession(
            *(engine, seat, visits, list(asked.record.values), self._closing),
            remarks=asked.remarks,
            players=asked.record.players,
            comments=dict(asked.comments),
        )
        if lines:
            session.variations = frames.variations(asked.record, asked.game, asked.states(), lines)
        self._sessions[session.id] = session
        while len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)
        return session.go_on()

    def stop(self) -> None:
        """Let all searches end, for good, from any thread."""
        self._closing.set()
        for session in list(self._sessions.values()):
            session.stop.set()

    def get(self, id: str) -> PlaySession:
        """TengenError if there is no such session."""
        if id not in self._sessions:
            raise TengenError("the server has dropped this game, because it keeps only the newest few; begin another")
        self._sessions.move_to_end(id)
        return self._sessions[id]

    def look(self, base: Path, network: str, key: str, ply: int) -> dict[str, Any]:
        """What a network thinks of a position of a recorded game: the network that played it, or the newest."""
        record = games.find_record(base, network, key)
        game, states = moves.game_of(record), list(moves.replay(record))
        if not 0 <= ply < len(states):
            raise OptionError(f"move {ply}: the game has {len(states) - 1} moves")
        path = (networks.known(base, network) if networks.parse(network) else None) or base
        if self._looking is None or self._looking[0] != path or self._looking[1].game != game:
            self._looking = (path, Engine(networks.find(path), game, SETTINGS))
        engine = self._looking[1]
        if bool(engine.game.is_over(states[ply])):
            raise OptionError("the game is over here")
        return {**_look(engine.game, states[ply], engine.look(states[ply])), "network": engine.found.name}


def network_path(base: Path, name: str) -> Path:
    """The folder of a network of a run; empty: the run, whose newest network is meant."""
    if not name:
        return base
    # A name comes from a browser, and must not lead anywhere else.
    if Path(name).name == name != ".." and (found := networks.known(base, name)) is not None:
        return found
    raise OptionError(f"{base.name}: there is no network {name!r}")


def pasted(text: str, saved: Any) -> tuple[query.Query, list[tuple[int, ...]]]:
    """A pasted SGF, PGN, FEN, record of ours, or a list of moves, as a game that the network can play; and variations.

    Variations are lists of actions from the start of the game.
    """
    if len(text) > _LONGEST:
        raise OptionError(f"the text has more than {_LONGEST:,} characters")
    text = text.strip()
    usual = query.new_game(saved)
    if isinstance(usual.game, Chess) and _FEN.fullmatch(text):
        try:
            state = usual.game.from_text(f"fen: {text}")
        except ValueError as error:
            _, _, why = str(error).rpartition("': ")
            raise RecordError(f"this FEN cannot be used: {why}") from None
        return query.Query(Record(saved.game, usual.record.options, (), start=usual.game.render(state))), []
    if not (text.startswith("(") or "tengen record" in text[:200] or _PGN.match(text)):
        try:
            return usual.then(text), []
        except TengenError as error:
            why = str(error).partition(": ")[2]
            raise OptionError(f"expected SGF, PGN, FEN or moves such as the board names them; {why}") from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pasted"
        path.write_text(text, "utf-8")
        try:
            return query.read_game(path, saved), load_variations(path, 0)
        except TengenError as error:
            raise OptionError(str(error).replace(f"{path}: ", "")) from None


def _named(game: Game, state: Any, action: int) -> dict[str, Any]:
    return {
        "action": action,
        "name": frames.move_names(game, [state], [action])[0],
        "place": frames.place_on(game, state, action),
    }


def _look(game: Game, state: Any, look: NetworkView) -> dict[str, Any]:
    """The raw network: heat by cell, value, score and ownership from the side of player 0, and words."""
    side = 1 - 2 * look.player
    heat: dict[str, float] = {}
    likely = np.argsort(-look.policy)[:80]
    moves = []
    for action in (int(a) for a in likely if look.policy[a] > 0.002):
        named = _named(game, state, action)
        moves.append({**named, "prior": round(float(look.policy[action]), 4)})
        if named["place"]:
            cell = str(named["place"][-1])
            heat[cell] = round(heat.get(cell, 0.0) + float(look.policy[action]), 4)
    words = f"the network gives {frames.seat_name(game, look.player)} {50 * (look.value + 1):.0f} %"
    if look.score is not None:
        words += f", {look.score:+.1f} points"
    words += "".join(f", {name} {value:.3g}" for name, value in look.targets.items() if value.ndim == 0)
    ownership = None if look.ownership is None else [round(float(x), 2) for x in (look.ownership * side).reshape(-1)]
    return {
        "player": look.player,
        "value": round(look.value * side, 4),
        "score": None if look.score is None else round(look.score * side, 2),
        "heat": heat,
        "ownership": ownership,
        "moves": moves[:_SHOWN],
        "words": words,
    }


def _search(game: Game, state: Any, report: SearchReport) -> dict[str, Any]:
    """A search, with its values from the side of player 0."""
    side = 1 - 2 * report.player
    found = []
    for each in list(report.candidates)[:_SHOWN]:
        line = analysis.follow(game, state, each.line[:_AHEAD] or [each.action])
        names = game.line(state, [move.action for move in line]) if isinstance(game, Chess) else [m.name for m in line]
        found.append(
            {
                "action": each.action,
                "name": names[0],
                "place": frames.place_on(game, state, each.action),
                "visits": each.visits,
                "value": round(each.value * side, 4),
                "prior": round(each.prior, 4),
                "line": names,
                "actions": [move.action for move in line],
            }
        )
    return {
        "searched": {
            "visits": report.visits,
            "value": round(report.value * side, 4),
            "seconds": round(report.seconds, 2),
            "candidates": found,
        }
    }
