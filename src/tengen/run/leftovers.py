"""What killed processes have left unfinished in a run directory, removed when the next one starts."""

from collections.abc import Iterator
from pathlib import Path

from tengen import files

_OWN = ("models", "selfplay", "games")  # what a run alone writes to, by folders of networks
_SHARED = ("candidates", "rejected", "extra", "ratings", "train", "parts")
_AGE = 3600.0  # seconds, in which every file is written


def clean(base: Path, *, alone: bool = False) -> list[Path]:
    """Remove unfinished files and folders (`.*.part`), and say what was removed.

    Others may be writing here, so only what is an hour old is removed. `alone`: the caller has the run directory to
    itself, so whatever is unfinished among networks, rows and games was left by the dead. Shuffles tell their dead by
    leases, and orbax cleans up its checkpoints itself.
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
