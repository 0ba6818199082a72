"""What an engine can do wrong in a game. Whoever does has lost that game, and the reason is noted."""

from typing import Literal

from tengen.data.records.records import Ending, shorten

Kind = Literal["crash", "time", "illegal move", "refused move", "nonsense"]
KINDS: tuple[Kind, ...] = ("crash", "time", "illegal move", "refused move", "nonsense")


class Fault(Exception):
    """An engine's fault: of what kind, and in words what happened."""

    def __init__(self, kind: Kind, words: str) -> None:
        super().__init__(words)
        self.kind: Kind = kind
        self.words = words

    @property
    def ending(self) -> Ending:
        """As a record of the game calls it."""
        return "time" if self.kind == "time" else "forfeit"

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}"


class Refusal(Fault):
    """The engine says that it cannot do what it was asked."""

    def __init__(self, command: str, answer: str) -> None:
        kind = "refused move" if command.startswith("play ") else "nonsense"
        super().__init__(kind, f"refused {shorten(command)}: {shorten(answer)}")
        self.answer = answer
