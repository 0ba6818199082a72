"""Where the checkpoints are of a run whose network grows (`net.growth`), and how often it has grown.

Those of the first network are in the trainer's folder itself, RUN/train/main, those of the next one in `grown-1` there.
"""

import re
from pathlib import Path

from tengen import files

_STEP = re.compile(r"step_\d+")
_GROWN = re.compile(r"grown-([1-9]\d{0,3})")


def folder(trainer: Path, times: int) -> Path:
    """The place of the checkpoints of a network that has grown so many times."""
    return trainer / f"grown-{times}" if times else trainer


def times_grown(trainer: Path) -> int:
    """How often the network of the newest checkpoints has grown."""
    found = ((_GROWN.fullmatch(path.name), path) for path in files.inside(trainer))
    return max((int(match[1]) for match, path in found if match and path.is_dir() and checkpoints(path)), default=0)


def checkpoints(place: Path) -> list[Path]:
    """The complete checkpoints in a folder, oldest first."""
    return sorted(path for path in files.inside(place) if _STEP.fullmatch(path.name) and path.is_dir())


def damaged(place: Path) -> bool:
    """Whether checkpoints in a folder were set aside."""
    return any(path.name.endswith(".corrupt") for path in files.inside(place))
