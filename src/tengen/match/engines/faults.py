"""What an engine can do wrong in a game. The engine loses that game, and the reason is recorded."""

from typing import Literal

from tengen.data.records.records import Ending, shorten

Kind = Literal["crash", "time", "illegal move", "refused move", "nonsense"]
KINDS: tuple[Kind, ...] = ("crash", "time", "illegal move", "refused move", "nonsense")


class Fault(Exception):
    """An engine's fault: its kind, and what happened in words."""

    def __init__(self, kind: Kind, words: str) -> None:
        super().__init__(words)
        self.kind: Kind = kind
        self.words = words

    @property
    def ending(self) -> Ending:
        """The ending of the game, as records name it."""
        return "time" if self.kind == "time" else "forfeit"

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}"


class Refusal(Fault):
    """The engine answered a command with an error."""

    def __init__(self, command: str, answer: str) -> None:
        kind = "refused move" if command.startswith("play ") else "nonsense"
        super().__init__(kind, f"refused {shorten(command)}: {shorten(answer)}")
        self.answer = answer
