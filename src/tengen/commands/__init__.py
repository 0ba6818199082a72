"""The command line: one thin module per command.

Each has HELP (a line for the list of commands), ABOUT, an EXAMPLE, ARGUMENTS and `run`, from the parsed arguments to
the exit code, or to nothing if that is 0; one with commands of its own has COMMANDS, a NOUN for them, and a `run_NAME`
for each. What takes long to import is imported in there, so that `tengen --help` answers at once.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import tengen
from tengen import importing
from tengen.commands.arguments import declare
from tengen.errors import TengenError
from tengen.jax_setup import device_problem
from tengen.schema import quote, unknown

_COMMANDS = (
    *("run", "set", "daemon", "tui", "status", "report", "web"),
    *("selfplay", "shuffle", "train", "export", "gate"),  # the parts of a run
    *("play", "gtp", "uci", "analyze", "review", "match", "rate", "rho"),
    *("sweep", "estimate", "import", "data", "config", "games", "nets", "bench"),
)
_MODULES = {"import": "import_network"}  # where the name of a command cannot be that of a module
_EXAMPLE = "example:"
_USER_ERROR = 2
# What a shell reports for a program that was stopped by these signals.
_INTERRUPTED = 130
_BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code. An error that the user can fix shows no traceback."""
    # A terminal that lacks a character shows its escape sequence, which means the same in YAML's quotes.
    if (reconfigure := getattr(sys.stdout, "reconfigure", None)) is not None:
        reconfigure(errors="backslashreplace")
    try:
        code = _run(argv)
        if sys.stdout is not None:  # it is None in a process that was started without one
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _discard_output()
        return _BROKEN_PIPE
    return code


def make_parser() -> argparse.ArgumentParser:
    """The whole command line. Every parser in it has a description and an example."""
    summary = (tengen.__doc__ or "").partition("\n")[0]
    parser = _Parser(prog="tengen", description=summary, example="tengen run tic_tac_toe")
    parser.add_argument("--version", action="version", version=f"tengen {tengen.__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in _COMMANDS:
        module: Any = importlib.import_module(f"{__name__}.{_MODULES.get(name, name)}")
        own = getattr(module, "HELP_ACTION", None)  # an action for -h that tells more
        command = subparsers.add_parser(
            name, help=module.HELP, description=module.ABOUT, example=module.EXAMPLE, add_help=own is None
        )
        if own is not None:
            command.add_argument("-h", "--help", action=own)
        if hasattr(module, "COMMANDS"):
            _add_subcommands(command, module)
        else:
            declare(command, module.ARGUMENTS)
            command.set_defaults(run=module.run)
    return parser


def _add_subcommands(parser: argparse.ArgumentParser, module: Any) -> None:
    found: Any = parser.add_subparsers(title=f"{module.NOUN}s", metavar=module.NOUN.upper(), required=True)
    for name, of in module.COMMANDS.items():
        command = found.add_parser(name, help=of.help, description=of.about, example=of.example)
        declare(command, of.arguments)
        command.set_defaults(run=getattr(module, f"run_{name.replace('-', '_')}"))


def _run(argv: Sequence[str] | None) -> int:
    parser = make_parser()
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:  # argparse has printed its help or its complaint
        return stop.code if isinstance(stop.code, int) else _USER_ERROR
    if "run" not in args:
        parser.print_help()
        return 0
    try:
        return args.run(args) or 0
    except TengenError as error:
        print(error, file=sys.stderr)
        return _USER_ERROR
    except Exception as error:
        problem = ""
        if "jax" in sys.modules and isinstance(error, RuntimeError | AssertionError):
            problem = device_problem()  # JAX may have no device, as JAX_PLATFORMS may cause
        if not (problem := problem or importing.blamed(error)):
            raise
        print(problem, file=sys.stderr)
        return _USER_ERROR


class _Formatter(argparse.HelpFormatter):
    """Fills descriptions, and leaves examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(_EXAMPLE) else super()._fill_text(text, width, indent)


class _Parser(argparse.ArgumentParser):
    """An argument parser that takes no abbreviations, and knows what a misspelt command was meant to be.

    `example` is a command line, or several lines of them, which the help ends with.
    """

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        shown = "".join(f"\n  {line}" for line in example.splitlines())
        words = {"epilog": f"{_EXAMPLE}{shown}", "formatter_class": _Formatter} if example else {}
        super().__init__(*args, allow_abbrev=False, **words, **kwargs)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            noun = action.metavar.lower() if isinstance(action.metavar, str) else "choice"
            known = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(None, f"{quote(value)}: {unknown(noun, str(value), known)}")


def _discard_output() -> None:
    """Discard the rest of the output, or Python complains about the closed pipe when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.dup2(nowhere, sys.stderr.fileno())
