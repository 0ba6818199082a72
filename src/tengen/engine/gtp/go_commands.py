"""The commands of Go; the places of handicap stones, dead stones, and the score without them."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from tengen import files, games
from tengen.config.settings.match import EngineSettings, PlaySettings
from tengen.data.records import sgf
from tengen.data.records.records import Record, RecordError
from tengen.engine.engine import Engine
from tengen.engine.gtp.commands import GtpCommands
from tengen.engine.gtp.protocol import GtpError, exactly, outcome, real, whole
from tengen.engine.position import IllegalMove
from tengen.errors import TengenError
from tengen.games import go_rules
from tengen.games.core import Game
from tengen.games.go import NO_POINT, Go, GoState
from tengen.games.go_chains import EMPTY, chains_of, colour_is
from tengen.games.text import GO_LETTERS
from tengen.run.networks import FoundNetwork

_LONGEST_GAME = 1000  # moves; networks do not see the limit, and people may play on
_VERTEX = re.compile(r"([A-HJ-Z])([1-9]\d?)")
_LARGEST_FILE = 50_000_000
_MOST_ENGINES = 4  # that are kept, one for each board and rules; each has a tree of its own


def fixed_handicap(size: int, count: int) -> list[int]:
    """The points of handicap stones by GTP's specification. GtpError if there are none for that number."""
    if not 2 <= count <= most_fixed(size):
        raise GtpError("invalid number of stones")
    edge = 2 if size < 12 else 3  # as GNU Go, whose author wrote the specification
    low, middle, high = edge, size // 2, size - 1 - edge  # rows and columns from the bottom left
    corners = [(low, low), (high, high), (low, high), (high, low)]
    sides = [(low, middle), (high, middle), (middle, low), (middle, high)]  # (column, row)
    points = corners[:count] if count < 4 else corners + sides[: (count - 4) // 2 * 2]
    if count > 4 and count % 2 == 1:
        points.append((middle, middle))
    return [(size - 1 - row) * size + column for column, row in points]


def most_fixed(size: int) -> int:
    if size < 7:
        return 0
    return 4 if size == 7 or size % 2 == 0 else 9


def running(game: Go, state: Any) -> Any:
    """The position with the game going on: two passes are forgotten; at the move limit, all past positions are."""
    if not bool(game.is_over(state)):
        return state
    if int(state.moves) >= game.max_moves:
        return game.position(state.chains, int(state.turn), state.ko)._replace(komi=state.komi)
    return unpassed(state)


def unpassed(state: Any) -> Any:
    """The position without its passes, so that the next pass does not end the game. Past boards are kept."""
    return state._replace(last=jnp.full_like(state.last, NO_POINT))


def dead(engine: Engine, game: Go) -> np.ndarray:
    """Bool[P]: stones that the network's ownership gives to the other side, whole chains at a time.

    A network without that head has no opinion: all stones are alive, as the area rules that it plays by have it.
    """
    state = running(game, engine.state)
    look = engine.look(state)
    chains = np.asarray(state.chains).astype(int)
    found = np.zeros(len(chains), bool)
    if look.ownership is None:
        return found
    black = look.ownership.reshape(-1) * (1 if look.player == 0 else -1)
    for chain in set(chains[chains != EMPTY].tolist()):
        mine = black[chains == chain].mean() * (1 if (chain - 1) % 2 == 0 else -1)
        found[chains == chain] = mine < 0
    return found


def score(engine: Engine, game: Go, dead: np.ndarray) -> float:
    """Black's area minus White's minus komi, with the dead stones, Bool[P], taken off."""
    chains = jnp.where(jnp.asarray(dead), EMPTY, engine.state.chains)
    return float(game.score(engine.state._replace(chains=chains.astype(engine.state.chains.dtype))))


class GoCommands(GtpCommands):
    """Go on any board that the network plays, with any komi and all of Tengen's rules; either colour may move."""

    game: Go  # type: ignore[assignment]

    def __init__(self, found: FoundNetwork, play: PlaySettings, engine: EngineSettings) -> None:
        self._engines: dict[tuple[int, str, bool], Engine] = {}  # by size, ko and suicide, the present one last
        self._komi = float(found.saved.options["komi"])
        self._handicap_stones = 0
        # Dead stones are taken off before the score is counted, unless other rules are set.
        self._rules = go_rules.of_game(found.saved.make_game().options) | {"friendlyPassOk": True}
        super().__init__(found, play, engine)
        self.commands |= {
            "fixed_handicap": self.fixed_handicap,
            "place_free_handicap": self.place_free_handicap,
            "set_free_handicap": self.set_free_handicap,
            "loadsgf": self.loadsgf,
            "final_status_list": self.final_status_list,
            "get_komi": lambda arguments: f"{self._komi:g}",
            "kata-get-rules": lambda arguments: go_rules.as_json(self._rules),
            "kata-set-rules": self.kata_set_rules,
            "kata-set-rule": self.kata_set_rule,
            "kgs-genmove_cleanup": self.genmove,  # it plays by area, and takes dead stones off before it passes
        }

    def _engine(self, game: Game) -> Engine:
        options = {**self.found.saved.options, "size": game.options.size, "komi": self._komi}
        options |= go_rules.to_options(self._rules)
        options["max_moves"] = max(game.max_moves, _LONGEST_GAME)
        return super()._engine(games.make("go", **options))

    def _use(self, size: int) -> None:
        """An engine for boards of that size and the current rules. GtpError if the network cannot play there."""
        wanted = (size, *go_rules.to_options(self._rules).values())
        self._engines.setdefault(_kind(self.game), self.engine)
        try:
            if wanted not in self._engines:
                made = self._engine(games.make("go", size=size))
                made.warm_up()  # now: when a move is asked for, a clock may run
                self._engines[wanted] = made
            self.engine = self._engines[wanted] = self._engines.pop(wanted)
            while len(self._engines) > _MOST_ENGINES:
                del self._engines[next(iter(self._engines))]
        except (TengenError, ValueError):
            raise GtpError("unacceptable size") from None

    def boardsize(self, arguments: list[str]) -> None:
        (size,) = (whole(text) for text in exactly(arguments, 1, "a size"))
        self._use(size)
        self.clear_board([])

    def clear_board(self, arguments: list[str]) -> None:
        super().clear_board(arguments)
        self._handicap_stones = 0
        self.engine.revise(self._with_komi)

    def komi(self, arguments: list[str]) -> None:
        """GTP wants any komi to be taken; the rules know half points up to 400."""
        (text,) = exactly(arguments, 1, "komi")
        points = real(text, "komi is not a number")
        self._komi = round(2 * min(max(points, -400.0), 400.0)) / 2
        self.engine.revise(self._with_komi)

    def _with_komi(self, state: GoState) -> GoState:
        points = self._komi + go_rules.bonus(self._rules, self._handicap_stones)
        return state._replace(komi=jnp.int16(round(2 * points)))

    # Rules

    def kata_set_rules(self, arguments: list[str]) -> None:
        """Rules by their name or as JSON; the game so far is kept."""
        exactly(arguments, 1, "rules")
        self._set_rules(lambda: go_rules.parse(" ".join(arguments)))

    def kata_set_rule(self, arguments: list[str]) -> None:
        key, value = exactly(arguments, 2, "a rule and its value")
        self._set_rules(lambda: go_rules.changed(self._rules, key, value))

    def _set_rules(self, read: Callable[[], go_rules.Rules]) -> None:
        before, old = self._rules, self.engine
        try:
            rules = read()
            go_rules.to_options(rules)
        except ValueError as error:
            raise GtpError(str(error)) from None
        self._rules = rules
        try:
            self._use(self.game.size)
            if self.engine is not old:
                self._replay(old)
            self.engine.revise(self._with_komi)
        except BaseException:
            self._rules, self.engine = before, old
            raise

    def _replay(self, old: Engine) -> None:
        """Repeat the game so far, which was played under other rules. GtpError if these forbid one of its moves."""
        start, *steps = old.steps
        self.engine.reset(self.game.position(start.state.chains, int(start.state.turn)))
        number = 0
        for step in steps:
            if step.action is None:
                self.to_move(int(step.state.turn))
                continue
            number += 1
            try:
                self.engine.play(step.action)
            except IllegalMove:
                name = self.names([step.action])[0]
                raise GtpError(f"cannot change the rules: they forbid move {number}, {name}") from None

    # Moves

    def action(self, text: str) -> int:
        """The number of a vertex, legal or not."""
        if text.lower() == "pass":
            return self.game.points
        found = _VERTEX.fullmatch(text.upper())
        if found:
            column, row = GO_LETTERS.index(found[1]), int(found[2])
            if column < self.game.size and row <= self.game.size:
                return (self.game.size - row) * self.game.size + column
        raise GtpError("invalid coordinate")

    def names(self, actions: Sequence[int]) -> list[str]:
        return [self.game.action_name(self.engine.state, action) for action in actions]

    def to_move(self, player: int) -> None:
        """After two passes the game goes on; if a colour moves twice, the other one passes in between.

        Nobody has really passed then: if that counted, a pass of who moves would end the game, and often win it.
        """
        state = running(self.game, self.engine.state)
        if int(state.turn) != player:
            passed = self.engine.step(state, self.game.points)
            state = unpassed(running(self.game, passed))
        if state is not self.engine.state:
            self.engine.put(state)

    def moves_left(self) -> float:
        points, moves = self.game.points, len(self.engine.actions)
        return max(0.75 * points - moves, 0.2 * points) / 2

    # Handicap

    def fixed_handicap(self, arguments: list[str]) -> str:
        (count,) = (whole(text) for text in exactly(arguments, 1, "a number of stones"))
        return self._handicap(fixed_handicap(self.game.size, count))

    def place_free_handicap(self, arguments: list[str]) -> str:
        """Stones where they are best: the fixed places as far as they go, then the network's choice."""
        (count,) = (whole(text) for text in exactly(arguments, 1, "a number of stones"))
        if not 2 <= count < self.game.points:
            raise GtpError("invalid number of stones")
        self._check_empty()
        most = most_fixed(self.game.size)
        points = fixed_handicap(self.game.size, min(count, most)) if most else []
        while len(points) < count:
            liked = self.engine.look(self._position(points, 0)).policy[: self.game.points].copy()
            liked[points] = -1
            points.append(int(np.argmax(liked)))
        return self._handicap(points)

    def set_free_handicap(self, arguments: list[str]) -> None:
        try:
            points = [self.action(text) for text in arguments]
        except GtpError:
            raise GtpError("bad vertex list") from None
        if not 2 <= len(set(points)) == len(points) < self.game.points or self.game.points in points:
            raise GtpError("bad vertex list")
        self._handicap(points)

    def _handicap(self, points: list[int]) -> str:
        self._check_empty()
        self._handicap_stones = len(points)
        self.engine.reset(self._position(points, 1))
        return " ".join(self.names(points))

    def _check_empty(self) -> None:
        if np.asarray(self.engine.state.chains).any() or self._marks:
            raise GtpError("board not empty")

    def _position(self, black: list[int], turn: int) -> GoState:
        colours = np.full(self.game.points, -1)
        colours[black] = 0
        try:
            chains = chains_of(colours.tolist(), self.game.size)
        except ValueError:
            raise GtpError("bad vertex list") from None
        return self._with_komi(self.game.position(chains, turn))

    # Records and results

    def loadsgf(self, arguments: list[str]) -> None:
        """The game in a file, up to the move of that number, which is not made."""
        name, *rest = exactly(arguments, 1, "a file") + arguments[1:]
        until = whole(rest[0]) if rest else None
        record = _record(Path(name))
        options = record.options
        before, komi, stones = self.engine, self._komi, self._handicap_stones
        self._use(options["size"])
        try:
            self._komi = float(options.get("komi", komi))
            start = None if record.start is None else self.game.from_text(record.start)
            actions = record.actions if until is None else record.actions[: max(until - 1, 0)]
            self._follow(start, actions)
        except (ValueError, TengenError) as error:
            self.engine, self._komi, self._handicap_stones = before, komi, stones
            raise GtpError(f"cannot load file: {error}") from None

    def _follow(self, start: GoState | None, actions: Sequence[int]) -> None:
        """A new game from `start`, and its moves. IllegalMove leaves the old one as it was."""
        steps, marks = list(self.engine.steps), list(self._marks)
        try:
            self.clear_board([])
            if start is not None:
                black, white = (int(colour_is(start.chains, colour).sum()) for colour in (0, 1))
                self._handicap_stones = 0 if white else black
                self.engine.reset(self._with_komi(start))
            for number, action in enumerate(actions, 1):
                mark = len(self.engine.steps)
                self.to_move(self.engine.player)
                try:
                    self._move(action, mark)
                except GtpError:
                    raise IllegalMove(f"move {number}, {self.names([action])[0]}, is illegal here") from None
        except IllegalMove:
            self._marks[:] = marks
            self.engine.steps[:] = steps
            self.engine.rewind(len(steps))
            raise

    def final_score(self, arguments: list[str]) -> str:
        return outcome(score(self.engine, self.game, self._dead()))

    def _dead(self) -> np.ndarray:
        """Bool[P]. None, if the rules want dead stones to be captured before both pass."""
        if not self._rules["friendlyPassOk"]:
            return np.zeros(self.game.points, bool)
        return dead(self.engine, self.game)

    def final_status_list(self, arguments: list[str]) -> str:
        """The stones of a status, chains in lines. By area, stones in seki are simply alive."""
        (wanted,) = exactly(arguments, 1, "dead, alive or seki")
        if wanted not in ("alive", "dead", "seki"):
            raise GtpError("syntax error: expected dead, alive or seki")
        if wanted == "seki":
            return ""
        dead = self._dead()
        chains = np.asarray(self.engine.state.chains)
        chosen = (chains != 0) & (dead == (wanted == "dead"))
        groups = [np.flatnonzero(chosen & (chains == chain)) for chain in dict.fromkeys(chains[chosen].tolist())]
        return "\n".join(" ".join(self.names([int(point) for point in group])) for group in groups)


def _kind(game: Go) -> tuple[int, str, bool]:
    return game.options.size, game.options.ko, game.options.suicide


def _record(path: Path) -> Record:
    try:
        content = files.read_bytes(path, _LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise GtpError(f"cannot load file: {path.name} is too large")
        return sgf.read(content)[0]
    except OSError as error:
        raise GtpError(f"cannot load file: {error.strerror or error}") from None
    except (RecordError, ValueError) as error:
        raise GtpError(f"cannot load file: {error}") from None
