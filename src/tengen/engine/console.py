"""A text board, on which a user plays against a network."""

import datetime
import random
import textwrap
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

from tengen.config.settings.match import PlaySettings
from tengen.data.records.records import file_name, save_records
from tengen.engine.engine import Engine
from tengen.errors import TengenError

_BAR = 30  # characters
_EXAMPLES = 8
_HELP = """Type the name of a move, or one of these:
  help        this
  moves       all legal moves
  hint        what the engine would play for you
  undo        take your last move back
  resign      give the game up
  new         begin again
  save FILE   keep the game: {kind}
  quit        stop playing"""


class Console:
    """One person, one engine, one game after the other; `read` asks for a line as `input` does, `write` shows text."""

    def __init__(
        self,
        engine: Engine,
        settings: PlaySettings,
        seat: int,
        read: Callable[[str], str] | None = None,
        write: Callable[[str], None] = print,
        seed: int | None = None,
    ) -> None:
        self._engine, self._settings, self.seat = engine, settings, seat
        self._read, self._write = read or input, write
        self._random = random.Random(seed)
        self._names = ["you", engine.found.name] if seat == 0 else [engine.found.name, "you"]
        self._begin()

    def run(self) -> None:
        game = self._engine.game
        order = "first" if self.seat == 0 else "second"
        self._write(
            f"{game.name}: you play {order} against {self._engine.found.name}. Type help for a list of commands."
        )
        try:
            while True:
                if self._ended() or self._engine.player == self.seat:
                    if not self._execute(self._read(self._prompt()).strip()):
                        break
                else:
                    self._answer()
        except (EOFError, KeyboardInterrupt):
            self._write("")
        self._write("Goodbye.")

    def _begin(self) -> None:
        key = jax.random.key(self._random.getrandbits(31))
        self._engine.reset(self._engine.game.init(key))
        self._resigned: int | None = None
        self._values: list[float | None] = []
        self._shown: int | None = None  # how many moves had been made when the board was last shown

    def _ended(self) -> bool:
        return self._resigned is not None or self._engine.over

    def _prompt(self) -> str:
        """The prompt; shows the board first if it has changed."""
        if self._shown != len(self._engine.actions):
            self._shown = len(self._engine.actions)
            self._write("")
            self._write(self._engine.game.render(self._engine.state))
            if self._ended():
                self._write(self._result())
        return "new, undo, save FILE or quit? " if self._ended() else "your move? "

    def _execute(self, text: str) -> bool:
        word, _, rest = text.partition(" ")
        commands: dict[str, Callable[[str], None]] = {
            "help": self._help,
            "?": self._help,
            "moves": self._moves,
            "hint": self._hint,
            "undo": self._undo,
            "resign": self._resign,
            "new": lambda rest: self._begin(),
            "save": self._save,
        }
        if word.lower() in ("quit", "exit", "q"):
            return False
        if not word:
            return True
        if word.lower() in commands:
            commands[word.lower()](rest.strip())
        else:
            self._move(text)
        return True

    def _move(self, text: str) -> None:
        if self._ended():
            self._write("The game is over: new begins another, undo takes a move back.")
            return
        try:
            action = self._engine.game.parse_action(self._engine.state, text)
        except ValueError as error:
            problem = (str(error).partition(": ")[2] or str(error)).partition("; legal are ")[0]  # as chess says
            self._write(f"{problem}. Legal moves: {self._examples()}")
            return
        self._engine.play(action)
        self._values.append(None)

    def _examples(self) -> str:
        legal = self._legal()
        more = len(legal) - _EXAMPLES
        return ", ".join(legal[:_EXAMPLES]) + (f" and {more} more." if more > 0 else ".")

    def _legal(self) -> list[str]:
        legal = np.flatnonzero(self._engine.legal())
        return [self._engine.game.action_name(self._engine.state, int(action)) for action in legal]

    def _answer(self) -> None:
        report = self._engine.think(self._settings.visits, self._settings.seconds)
        assert report.action is not None
        (name,) = self._engine.names([report.action])
        self._engine.play(report.action)
        self._values.append(round(report.value, 3))
        self._write(f"\n{self._engine.found.name} plays {name}   {self._bar(-report.value)}")

    def _bar(self, value: float) -> str:
        """Both sides' chances as a bar, from the engine's `value` for the user."""
        chance = (value + 1) / 2
        filled = round(chance * _BAR)
        return f"you {chance:.0%} [{'#' * filled}{'.' * (_BAR - filled)}] {1 - chance:.0%} engine"

    def _hint(self, rest: str) -> None:
        if self._ended():
            self._write("The game is over.")
            return
        for move in self._engine.think(self._settings.visits, self._settings.seconds).candidates[:3]:
            names = self._engine.names(move.line[:6])
            wins = f"wins {(move.value + 1) / 2:4.0%}, {move.visits} visits"
            self._write(f"  {names[0]:8} {wins}   {' '.join(names)}")

    def _undo(self, rest: str) -> None:
        if self._resigned is not None:
            self._resigned, self._shown = None, None
            return
        length = self._engine.last_choice(self.seat)
        if length is None:
            self._write("There is nothing to take back.")
            return
        self._engine.rewind(length)
        del self._values[len(self._engine.actions) :]

    def _resign(self, rest: str) -> None:
        if not self._ended():
            self._resigned, self._shown = self.seat, None

    def _result(self) -> str:
        winner = self._winner()
        if winner == 0:
            return "A draw."
        person = (winner > 0) == (self.seat == 0)
        if self._resigned is not None:
            return f"You resign; {self._engine.found.name} wins."
        facts = self._engine.game.record_facts(self._engine.state)
        by = f" by {abs(float(facts['score'])):g} points" if "score" in facts else ""
        return f"You win{by}!" if person else f"{self._engine.found.name} wins{by}."

    def _winner(self) -> float:
        if self._resigned is not None:
            return 1.0 if self._resigned == 1 else -1.0
        return float(self._engine.game.returns(self._engine.state)[0])

    def _help(self, rest: str) -> None:
        go = self._engine.game.name == "go"
        self._write(_HELP.format(kind="SGF" if go else "a text that Tengen reads"))
        if not self._ended():
            self._write(f"Moves here look like {self._examples()}")

    def _moves(self, rest: str) -> None:
        self._write(textwrap.fill(" ".join(self._legal()) or "None: the game is over.", 100))

    def _save(self, rest: str) -> None:
        if not rest:
            self._write("Say where: save FILE")
            return
        path = Path(rest)
        path = path if path.suffix else path.parent / file_name(path.name, self._engine.game.name)
        record = self._engine.record(
            self._resigned,
            values=tuple(self._values),
            players=tuple(self._names),
            network=self._engine.found.name,
            date=datetime.date.today().isoformat(),
        )
        try:
            save_records(path, [record])
        except (OSError, ValueError, TengenError) as error:
            self._write(f"{path}: the game cannot be saved: {getattr(error, 'strerror', None) or error}")
        else:
            self._write(f"Saved to {path}.")
