"""Importing what users bring: `package.module:Name` in a configuration, on the command line or in Python.

    game = load("breakthrough:Breakthrough", "a game")

The current directory is importable, as with `python -m`, and so is the folder of a configuration file. Errors say what
was wrong in the user's own file and line.
"""

import contextlib
import functools
import importlib
import inspect
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from tengen.errors import Diverged, OptionError, TengenError
from tengen.schema import quote, unknown

_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
# Frames of these packages are never what a user has to look at.
_NOT_THEIRS = {
    *("tengen", "jax", "jaxlib", "flax", "optax", "orbax", "numpy", "jaxtyping"),
    *("torch", "tensorflow", "keras"),
}

_MARK = "# modules "  # of a line in a configuration that a run or a sweep wrote
_used: dict[str, None] = {}  # folders that modules of users were imported from
_brought: set[str] = set()  # the packages of those modules, or the modules themselves
_INSTALLED = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
_LIBRARIES = (*_INSTALLED, sysconfig.get_path("stdlib"), str(Path(__file__).parent))
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


class UserCodeError(OptionError):
    """A mistake in code that a user brought, with the file and line."""


def is_reference(text: object) -> bool:
    """Whether the text has the form `package.module:Name`."""
    return isinstance(text, str) and _REFERENCE.fullmatch(text) is not None


def load(reference: str, what: str) -> Any:
    """The class or function that `package.module:Name` refers to; `what` names it in messages, such as "a game".

    Raises OptionError if the reference is malformed, if there is no such module or name, if the name is not a class or
    function, and if importing the module fails; then with the user's file and line.
    """
    if not is_reference(reference):
        raise OptionError(f"{quote(reference)}: expected {what} as PACKAGE.MODULE:NAME, such as my_code:Name")
    module_name, _, name = reference.partition(":")
    found: Any = import_module(module_name, f"{reference}: {what}")
    for part in name.split("."):
        if not hasattr(found, part):
            public = [known for known in vars(found) if not known.startswith("_")] if hasattr(found, "__dict__") else []
            raise OptionError(f"{reference}: {_file(module_name)}: {part}: {unknown('name', part, public)}")
        found = getattr(found, part)
    if not callable(found):
        raise OptionError(f"{reference}: expected {what}, a class or a function, got {quote(found)}")
    return found


def import_module(name: str, wanted: str) -> ModuleType:
    """The module. OptionError, whose message begins with `wanted`, if it does not exist or cannot be imported."""
    _make_current_directory_importable()
    _brought.add(name.rpartition(".")[0] or name)
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise OptionError(
                f"{wanted}: there is no module {error.name}, neither in the current directory ({_current_directory()}) "
                f"nor among the installed packages; run the command in the folder that holds it, or add that folder to "
                f"PYTHONPATH"
            ) from error
        raise OptionError(f"{wanted}: importing {name} failed: {explain(error)}") from error
    except Exception as error:
        raise OptionError(f"{wanted}: importing {name} failed: {explain(error)}") from error
    except SystemExit as error:
        raise OptionError(f"{wanted}: importing {name} ended the program: {explain(error)}") from error
    if (file := getattr(module, "__file__", None)) and not file.startswith(_INSTALLED):
        folder = Path(file).resolve().parents[name.count(".") + (Path(file).stem == "__init__")]
        _used[str(folder)] = None
    return module


def add_folders(folders: Iterable[Path | str]) -> None:
    """Make modules in these folders importable, unless there are others of the same name."""
    sys.path += [folder for each in folders if (folder := str(Path(each).resolve())) not in sys.path]


def noted_folders() -> list[str]:
    """Lines for the top of a configuration: the folders that its modules were imported from."""
    return [f"{_MARK.removeprefix('# ')}{folder}" for folder in _used if folder.isprintable()]


def read_folders(text: str) -> list[str]:
    """The folders that `noted_folders` wrote at the top of a configuration."""
    lines = text.splitlines()
    return [line.removeprefix(_MARK) for line in lines if line.startswith(_MARK) and os.path.isabs(line[len(_MARK) :])]


@contextlib.contextmanager
def told(what: str, called: Any = None) -> Iterator[None]:
    """Around code of a user: an exception in it becomes a UserCodeError with the user's file and line.

    `called` is the user's function, for calls that fail because it takes other arguments. Exceptions elsewhere, such
    as too little memory on the device, and a training that diverges are left alone.
    """
    try:
        yield
    except (Diverged, UserCodeError):
        raise
    except (Exception, SystemExit) as error:
        place = place_of(error) or (where(called) if called and isinstance(error, TypeError) else "")
        if not place or "RESOURCE_EXHAUSTED" in str(error):
            raise
        said = explain(error, called)
        if isinstance(error, TengenError):
            said = str(error) if place.partition(", in ")[0] in str(error) else f"{error} ({place})"
        raise UserCodeError(f"{what}: {said}") from error


def explain(error: BaseException, called: Any = None) -> str:
    """An exception from a user's code on one line: its type, its message, and the file and line of the user.

    `called` is the function that was called: its place is told if the call itself failed, as with wrong arguments.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = lines[0] if lines else ""
    if callback := _of_callback(error):
        return callback
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({shown(error.filename)}, line {error.lineno})"
    place = place_of(error) or (called is not None and where(called))
    return type(error).__name__ + (f": {message}" if message else "") + (f" ({place})" if place else "")


def place_of(error: BaseException) -> str:
    """Where in a user's own code an exception was raised, as `FILE, line 12, in step`; empty if nowhere in it."""
    theirs = [
        (frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not _is_library(frame.f_globals.get("__name__", ""), frame.f_code.co_filename)
    ]
    if not theirs:
        return ""
    code, line = theirs[-1]
    function = "" if code.co_name == "<module>" else f", in {code.co_name}"
    return f"{shown(code.co_filename)}, line {line}{function}"


def blamed(error: BaseException) -> str:
    """An exception that came out of a module which a user brought, in a line as `explain` gives it; else empty."""
    through = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    theirs = any(map(_is_brought, through)) or _of_callback(error)
    return explain(error) if theirs and "RESOURCE_EXHAUSTED" not in str(error) else ""


def _of_callback(error: BaseException) -> str:
    """An exception in a user's function that compiled code calls (`jax.pure_callback`), as `explain` gives it.

    JAX reports such an exception with its traceback as text. Empty for others.
    """
    _, found, text = str(error).partition("Traceback (most recent call last):")
    theirs = [frame for frame in _FRAME.findall(text) if not frame[0].startswith((*_LIBRARIES, "<"))]
    said = [line for line in text.splitlines() if re.match(r"[\w.]+(: |$)", line)]
    if not (found and theirs and said):
        return ""
    file, line, function = theirs[-1]
    return f"{said[0]} ({shown(file)}, line {line}, in {function})"


def where(thing: Any) -> str:
    """Where a user's function, class or callable object is written, as `FILE, line 12`; its name if that is unknown."""
    while isinstance(thing, functools.partial | functools.partialmethod | functools.cached_property):
        thing = thing.func
    thing = inspect.unwrap(getattr(thing, "__func__", thing))
    if code := getattr(thing, "__code__", None):
        return f"{shown(code.co_filename)}, line {code.co_firstlineno}"
    written = thing if isinstance(thing, type) else type(thing)
    try:
        return f"{shown(inspect.getfile(written))}, line {inspect.getsourcelines(written)[1]}"
    except (OSError, TypeError):
        return getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None) or written.__qualname__


def _is_library(module: str, file: str) -> bool:
    package = module.partition(".")[0]
    if package in _NOT_THEIRS or package in sys.stdlib_module_names or file.startswith("<"):
        return True
    return file.startswith(_INSTALLED) and not _is_brought(module)


def _is_brought(module: str) -> bool:
    """Whether a user brought the module, or another one of its package."""
    if module.partition(".")[0] in _NOT_THEIRS:
        return False
    return any(f"{module}.".startswith(f"{package}.") for package in _brought)


def _file(module_name: str) -> str:
    return shown(getattr(sys.modules[module_name], "__file__", None) or module_name)


def shown(file: str) -> str:
    """A path, relative to the current directory if it is inside."""
    here = _current_directory()
    return str(Path(file).relative_to(here)) if here and Path(file).is_relative_to(here) else file


def _current_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return ""


def _make_current_directory_importable() -> None:
    here = _current_directory()
    if here and here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()  # the file may be newer than the last look into its folder
