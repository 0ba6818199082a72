"""Who may use a run directory: the fused loop alone, or any number of parts; of some kinds one at a time."""

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tengen.errors import OptionError
from tengen.files import lock
from tengen.run import leftovers

_NAME = re.compile(r"[A-Za-z0-9]{1,40}")


def check_name(name: str) -> str:
    """A trainer's name. OptionError if it cannot be part of a network's."""
    if not _NAME.fullmatch(name):
        raise OptionError(f"--name: expected letters and digits, at most 40 of them, got {name!r}")
    return name


_LOOK = 0.2  # seconds between two looks at whether others have ended


@contextlib.contextmanager
def following(
    base: Path, only: str, seconds: float, say: Callable[[str], None], stop: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """`taking_part` of who may come after a process of this machine that is about to end: it has so long for that."""
    end, said = time.monotonic() + seconds, False
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(taking_part(base, only))
                break
            except lock.InUse as error:
                if not error.here or stop() or time.monotonic() >= end:
                    raise
                if not said:
                    say(f"waiting, {seconds:.0f} s at most: {error}")
                said = True
                time.sleep(_LOOK)
        yield


@contextlib.contextmanager
def taking_part(base: Path, only: str = "") -> Iterator[None]:
    """Be a part of the run. `only` names what one process may be at a time, as `train-main`."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(lock.locked(base, shared=True))
        if only:
            kind, _, name = only.partition("-")
            what, other = (f"trainer {name}", "--name") if kind == "train" else (only, "--base")
            stack.enter_context(lock.locked(base, name=f".lock-{only}", what=f"{base}: {what}", other=other))
        leftovers.clean(base)
        yield
