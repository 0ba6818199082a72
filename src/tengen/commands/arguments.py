"""How commands declare their arguments, and the arguments that many of them have."""

import argparse
from argparse import Namespace as Namespace
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A parser of whole numbers from `least` to `most`."""

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else -1
        if number < least or (most is not None and number > most):
            words = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"expected a whole number {words}, got {text[:40]!r}")
        return number

    return parse


def amount(noun: str, most: float) -> Callable[[str], float]:
    """A parser of numbers above 0, at most `most`; `noun` says of what, as "seconds"."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if not 0 < number <= most:
            raise argparse.ArgumentTypeError(f"expected {noun} above 0, at most {most:,g}, got {text[:40]!r}")
        return number

    return parse


def file_or_dash(text: str) -> Path | str:
    """`-` is standard output."""
    return text if text == "-" else Path(text)


count, positive = whole(0), whole(1)


@dataclass(frozen=True)
class Arg:
    """One argument. `form` is how it is written: `NAME`, `--name VALUE`, or `--name` for one that is there or not.

    Several options before the value mean the same. `?`, `*` or `+` after the value say how often it comes (`nargs`).
    """

    form: str
    help: str | None = None
    type: Callable[[str], Any] | None = None
    default: Any = None
    choices: tuple[str, ...] | None = None
    dest: str | None = None
    required: bool | None = None
    repeats: bool = False  # whether the option may be given several times; the values make a list

    def declare(self, parser: Any) -> None:
        names = [word for word in self.form.split() if word.startswith("--")]
        shown = [word for word in self.form.split() if not word.startswith("--")]
        given = {"help": self.help, "type": self.type, "choices": self.choices, "required": self.required}
        given |= {"dest": self.dest, "default": [] if self.repeats else self.default}
        if shown and shown[-1][-1] in "?*+":
            given["nargs"], shown[-1] = shown[-1][-1], shown[-1][:-1]
        elif len(shown) > 1:
            given["nargs"] = len(shown)
        given["metavar"] = None if not shown else shown[0] if len(shown) == 1 else tuple(shown)
        if not names:
            names, given["dest"] = [self.dest or shown[0].lower()], None
        if self.repeats:
            given["action"] = "append"
        elif not (shown or self.choices):
            given |= {"action": "store_true", "default": False}
        parser.add_argument(*names, **{name: value for name, value in given.items() if value is not None})


Arguments = Iterable[Arg | str]
"""A text begins a group of arguments, of which it is the title."""


@dataclass(frozen=True)
class Subcommand:
    """One of the commands of a command. The function `run_NAME` of the same module runs it."""

    help: str
    about: str
    example: str
    arguments: Arguments = ()


def declare(parser: argparse.ArgumentParser, arguments: Arguments) -> None:
    """Declare the arguments of a command."""
    group: Any = parser
    for argument in arguments:
        if isinstance(argument, str):
            group = parser.add_argument_group(argument)
        else:
            argument.declare(group)


def overrides(words: str = "change one setting", form: str = "SECTION.KEY=VALUE") -> Arg:
    """`--set`; `words` say what it does."""
    return Arg(f"--set {form}", f"{words} (may be repeated)", dest="overrides", repeats=True)


CONFIG_HELP = "a YAML file, a name from `tengen config list`, or the directory of a run"
CONFIG = (Arg("CONFIG", CONFIG_HELP), overrides())
"""By which every command is told its configuration."""
BASE = Arg("--base RUN", "the run directory (default: CONFIG if that is one, else runs/<name of the run>)", Path)
