"""Who may use a run directory: the fused loop alone, or any number of parts, of which some kinds exist only once.

Whoever takes the lock also removes what killed processes have left unfinished.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tengen import files
from tengen.errors import OptionError
from tengen.files import lock

_NAME = re.compile(r"[A-Za-z0-9]{1,40}")
_OWN = ("models", "selfplay", "games")  # what a run alone writes to, by folders of networks
_SHARED = ("candidates", "rejected", "extra", "ratings", "train", "parts")
_AGE = 3600.0  # seconds; no file takes that long to write


def check_name(name: str) -> str:
    """A trainer's name. OptionError if it cannot be part of a network's."""
    if not _NAME.fullmatch(name):
        raise OptionError(f"--name: expected letters and digits, at most 40 of them, got {name!r}")
    return name


def following(
    base: Path, only: str, seconds: float, say: Callable[[str], None], stop: Callable[[], bool] = lambda: False
) -> contextlib.AbstractContextManager[None]:
    """As `taking_part`, but waits up to `seconds` for a process of this machine that is about to end."""
    said: list[lock.InUse] = []

    def give_up(error: lock.InUse) -> bool:
        if not error.here or stop():
            return True
        if not said:
            say(f"waiting, {seconds:.0f} s at most: {error}")
            said.append(error)
        return False

    return lock.waiting(lambda: taking_part(base, only), seconds, give_up)


@contextlib.contextmanager
def taking_part(base: Path, only: str = "", other: str = "") -> Iterator[None]:
    """Take part in the run. `only` names a part that exists only once, such as `train-main`.

    `other` is the option with which the user chooses another place, by default --name for trainers.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(lock.locked(base, shared=True))
        if only:
            kind, _, name = only.partition("-")
            what, option = (f"trainer {name}", "--name") if kind == "train" else (only, "--base")
            other = other or option
            stack.enter_context(lock.locked(base, name=f".lock-{only}", what=f"{base}: {what}", other=other))
        remove_unfinished(base)
        yield


def remove_unfinished(base: Path, *, alone: bool = False) -> list[Path]:
    """Remove unfinished files and folders (`.*.part`); returns what was removed.

    Others may be writing here, so only what is an hour old is removed. `alone`: the caller has the run directory to
    itself, so whatever is unfinished among networks, rows and games was left by a killed process. Shuffles have leases,
    and orbax cleans up its checkpoints itself.
    """
    removed = files.remove_parts((folder for name in _OWN for folder in _inside(base / name)), 0.0 if alone else _AGE)
    return removed + files.remove_parts([base, *(folder for name in _SHARED for folder in _inside(base / name))], _AGE)


def _inside(folder: Path) -> Iterator[Path]:
    """A folder and those in it that are not themselves unfinished."""
    yield folder
    try:
        yield from sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        return
