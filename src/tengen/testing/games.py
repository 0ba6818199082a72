"""Whether a game keeps the promises of `tengen.games.core.Game`: random games are played and looked at."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax

from tengen import games, importing, schema
from tengen.errors import OptionError
from tengen.games import contract
from tengen.games.core import Game
from tengen.testing import playing, symmetries, texts

_BATCH = 32
_FEW = 8
_LISTED = 20  # problems


def check_game(game: type[Game] | Game, **options: object) -> tuple[str, ...]:
    """Checks a game: its class with options, or a game itself. Returns notes about what could not be checked.

    Raises `BadGame`, an OptionError, which lists everything that is wrong: the method with its file and line, the
    position, what was expected and what was found.
    """
    if not isinstance(game, Game):
        cls = contract.check_class(game, getattr(game, "__name__", str(game)))
        name = getattr(cls, "name", None)
        if not (isinstance(name, str) and name):
            raise contract.BadGame(cls.__name__, [f"{importing.where(cls)}: name is missing, such as 'breakthrough'"])
        try:
            chosen = schema.from_options(cls.Options, options, name)
        except TypeError as error:  # the declaration of the options is wrong
            raise contract.BadGame(name, [f"{importing.where(cls.Options)}: {error}"]) from error
        game = contract.make(cls, chosen, name)
    elif options:
        raise OptionError(f"{game.name}: a game that is made already takes no options, got {', '.join(options)}")
    elif found := list(contract.problems(game)):
        raise contract.BadGame(game.name, found)
    problems, notes = look(game, _BATCH)
    if problems:
        left = [f"and {len(problems) - _LISTED} more problems"] if len(problems) > _LISTED else []
        raise contract.BadGame(game.name, problems[:_LISTED] + left)
    return tuple(notes)


def look(
    game: Game, batch: int, played: playing.PlayedGames | None = None, mirrored: symmetries.Mirrored | None = None
) -> tuple[list[str], list[str]]:
    """Problems and notes from playing that many games at once, or from these; `mirrored` gives starts, if it must."""
    played = _recorded(game, batch) if played is None else played
    problems = list(playing.problems(game, played))
    if problems:
        return problems, []  # what follows takes the rules for granted
    notes: list[str] = []
    problems += _guarded(playing.again(game, played), "playing again")
    problems += _guarded(texts.problems(game, played, notes), "text")
    problems += _guarded(symmetries.problems(game, played, notes, mirrored), "symmetries")
    return problems, notes


def check_quickly(name: str, options: dict[str, Any]) -> None:
    """Raises BadGame for what a few random games show, before a run begins with a game that does not ship."""
    game = games.make(name, **options)
    played = _recorded(game, _FEW)
    found = list(playing.problems(game, played)) or _guarded(texts.printed(game, played), "text")
    found = found or _guarded(playing.pure(game, played), "calling methods again")
    if found:
        raise contract.BadGame(name, found)


def check_elsewhere(check: Callable[..., None], name: str, *more: Any) -> None:
    """`check(name, ...)` in a child process, for a process that must not take the memory of a device.

    `check` is a function of a module, its arguments are JSON data, and the messages of its errors begin with the name.
    """
    program = f"import json, sys; from {check.__module__} import {check.__name__} as f; f(*json.loads(sys.argv[1]))"
    words = [sys.executable, "-c", program, json.dumps([name, *more])]
    folders = os.pathsep.join(filter(None, sys.path))  # that of the configuration is among them
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": folders}
    found = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if found.returncode:
        *_, told = re.split(rf"(?m)^[\w.]+: (?={re.escape(name)})", found.stderr)
        known = told.startswith(name)
        raise OptionError(told.strip() if known else f"{name}: cannot be checked: {told[-300:].strip()}")


def _recorded(game: Game, batch: int) -> playing.PlayedGames:
    try:
        return playing.record(game, playing.start(game, batch), seed=1)
    except Exception as error:
        raise contract.BadGame(game.name, [f"a game cannot be played: {importing.explain(error)}"]) from error


def _guarded(found: Iterator[str], what: str) -> list[str]:
    problems = []
    try:
        for problem in found:
            problems.append(problem)
    except (jax.errors.JAXTypeError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        problems.append(f"{what}: {importing.explain(error)}")
    return problems
