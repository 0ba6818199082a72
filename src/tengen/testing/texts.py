"""Whether positions and actions can be printed and read back."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from tengen import importing
from tengen.games import contract
from tengen.games.core import Game
from tengen.testing.playing import PlayedGames, problem, record

GARBAGE = ("", "\n\n", "garbage", "to play: x", "\x00\ud7ff", "1 2 3\n" * 30, ":" * 9)
_UNREADABLE = "positions cannot be read from text"  # what a game says that reads none
UNKNOWN = ("", " ", "zz99", "-1", "nowhere", "{0,99}", "\u2460")


def problems(game: Game, played: PlayedGames, notes: list[str]) -> Iterator[str]:
    """Problems with render, from_text, action_name and parse_action."""
    if found := list(printed(game, played)):
        yield from found
        return
    yield from _read_back(game, played, notes)
    yield from _refused(game, "from_text", game.from_text, GARBAGE)
    yield from _names(game, played)


def sample(played: PlayedGames, count: int, over: bool | None = None, seed: int = 0) -> list[tuple[int, int]]:
    """Some (moment, game): starts, middles and ends; `over` picks finished or running ones."""
    last, games = len(played.over) - 1, range(played.over.shape[1])
    moments = [(min(t, last), g) for g in games for t in range(played.length(g) + 1)]
    moments = [at for at in moments if over is None or played.over[at] == over]
    random.Random(seed).shuffle(moments)
    return moments[:count]


def printed(game: Game, played: PlayedGames) -> Iterator[str]:
    """Problems with printing positions and legal actions."""
    for t, g in [(0, 0), *sample(played, 4, over=False), *sample(played, 1, over=True)]:
        state = played.state(t, g)
        text = _called(game, "render", state)
        if not isinstance(text, str):
            yield problem(game, played, "render", t, g, f"expected text, got {_words(text)}")
            return
        if game.drawn_as is not None and not _is_grid(text, game.planes_shape):
            height, width, _ = game.planes_shape
            wanted = f"a line of column names, then {height} rows of a name and {width} of x, o and ., to be drawn"
            yield problem(game, played, "render", t, g, f"expected {wanted}, got {text!r}")
            return
        names = {}
        for action in np.flatnonzero(played.legal[t, g]).tolist():
            name, wrong = _called(game, "action_name", state, action), ""
            if not isinstance(name, str) or not name.strip() or name != name.strip():
                wrong = f"action {action}: expected a name without spaces around it, got {_words(name)}"
            elif name.lower() in names:
                wrong = f"actions {names[name.lower()]} and {action} have the same name, {name}"
            if wrong:
                yield problem(game, played, "_action_name", t, g, wrong)
                return
            names[name.lower()] = action


def _is_grid(text: str, shape: tuple[int, int, int]) -> bool:
    height, width, _ = shape
    columns, *rows = [line.split() for line in text.splitlines()[: height + 1]] or [[]]
    signs = [set("".join(cells).lower()) <= set("xo.") and len(cells) == width for _, *cells in rows if rows]
    return len(columns) == width and len(signs) == height and all(signs)


def _read_back(game: Game, played: PlayedGames, notes: list[str]) -> Iterator[str]:
    moments = sample(played, 4, over=False)
    states = []
    for t, g in moments:
        text = game.render(played.state(t, g))
        state = _called(game, "from_text", text)
        if isinstance(state, _Raised):
            if _UNREADABLE not in state.words:
                yield problem(game, played, "from_text", t, g, f"cannot read what render prints: {state.words}")
            return
        if game.render(state) != text:
            yield problem(game, played, "from_text", t, g, "render prints another position after reading its own text")
            return
        states.append(state)
    where, kinds = contract.at(game, "from_text"), jax.tree.map(_kind, played.state(0, 0))
    if any(jax.tree.map(_kind, state) != kinds for state in states):
        yield f"{where}: expected a state with the shapes and types that init gives"
        return
    batch = played.over.shape[1]
    read = record(game, jax.tree.map(lambda *leaves: np.resize(leaves, (batch, *leaves[0].shape)), *states))
    for n, (t, g) in enumerate(moments):
        if read.to_play[0, n] != played.to_play[t, g] or read.over[0, n]:
            wrong = "the text is read as another player's turn, or as a finished game"
            yield problem(game, played, "from_text", t, g, wrong)
        same = (read.legal[0, n] == played.legal[t, g]).all() and (read.planes[0, n] == played.planes[t, g]).all()
        note = f"{where}: legal actions or planes of a position that is read differ; is that its history?"
        if not same and note not in notes:
            notes.append(note)


def _names(game: Game, played: PlayedGames) -> Iterator[str]:
    for t, g in sample(played, 6, over=False):
        state = played.state(t, g)
        legal = np.flatnonzero(played.legal[t, g]).tolist()
        for action in random.Random(t).sample(legal, min(3, len(legal))):
            name = game.action_name(state, action)
            for spelling in (name, name.upper(), name.lower(), f" {name}\n"):
                found = _called(game, "parse_action", state, spelling)
                if found != action:
                    wrong = f"{spelling!r}: expected action {action}, got {_words(found)}"
                    yield problem(game, played, "parse_action", t, g, wrong)
                    return
        names = {game.action_name(state, action).lower() for action in legal}
        before = (max(t - 1, 0), g)
        old = (game.action_name(played.state(*before), int(a)) for a in np.flatnonzero(played.legal[before]))
        illegal = sorted(name for name in old if name.lower() not in names)
        yield from _refused(game, "parse_action", lambda text, s=state: game.parse_action(s, text), illegal[:2])
    start = played.state(0, 0)
    yield from _refused(game, "parse_action", lambda text: game.parse_action(start, text), UNKNOWN)
    yield from _refused(game, "action_name", lambda action: game.action_name(start, action), (-1, game.num_actions))
    t, g = sample(played, 1, over=True)[0]
    first = game.action_name(played.state(0, g), int(played.legal[0, g].argmax()))
    ended = played.state(t, g)
    yield from _refused(game, "parse_action", lambda text: game.parse_action(ended, text), (first, "nowhere"))


def _refused(game: Game, method: str, function: Callable[[Any], Any], inputs: Any) -> Iterator[str]:
    """A problem if one of the inputs is not refused with a ValueError that names the game."""
    for text in inputs:
        try:
            wrong = f"expected ValueError, got {_words(function(text))}"
        except ValueError as error:
            wrong = "" if game.name in str(error) else f"expected a message with the game's name, got {error}"
        except Exception as error:
            wrong = f"expected ValueError, got {importing.explain(error)}"
        if wrong:
            yield f"{contract.at(game, method)}: {text!r}: {wrong}"
            return


class _Raised:
    def __init__(self, error: Exception) -> None:
        self.words = importing.explain(error)


def _called(game: Game, method: str, *args: Any) -> Any:
    try:
        return getattr(game, method)(*args)
    except Exception as error:
        return _Raised(error)


def _words(found: Any) -> str:
    return found.words if isinstance(found, _Raised) else repr(found)[:80]


def _kind(leaf: Any) -> str:
    return f"{np.asarray(leaf).dtype}{np.shape(leaf)}"
