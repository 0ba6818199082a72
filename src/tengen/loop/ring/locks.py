"""Who may use a run directory: the fused loop alone, or any number of parts; of some kinds one at a time."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from tengen.config import run_directory
from tengen.errors import OptionError

_NAME = re.compile(r"[A-Za-z0-9]{1,40}")


def check_name(name: str) -> str:
    """A trainer's name. OptionError if it cannot be part of a network's."""
    if not _NAME.fullmatch(name):
        raise OptionError(f"--name: expected letters and digits, at most 40 of them, got {name!r}")
    return name


@contextlib.contextmanager
def taking_part(base: Path, only: str = "") -> Iterator[None]:
    """Be a part of the run. `only` names what one process may be at a time, as `train-main`."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(run_directory.locked(base, shared=True))
        if only:
            kind, _, name = only.partition("-")
            what, other = (f"trainer {name}", "--name") if kind == "train" else (only, "--base")
            stack.enter_context(run_directory.locked(base, name=f".lock-{only}", what=f"{base}: {what}", other=other))
        yield
