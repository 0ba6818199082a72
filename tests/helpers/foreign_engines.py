"""The fake engine, and the real ones."""

import shutil
import sys
from pathlib import Path

from tengen.match.engines.engine import Terms
from tests.helpers.patience import LONG

FAKE = Path(__file__).with_name("fake_engine.py")
GNUGO = shutil.which("gnugo") or shutil.which("/usr/games/gnugo")
STOCKFISH = shutil.which("stockfish") or shutil.which("/usr/games/stockfish")

PATIENT = Terms(patience=LONG)  # for what must come, however busy the machine
HASTY = Terms(seconds=0.1, grace=0.4, patience=LONG)  # for moves that never come


def fake(protocol: str, behaviour: str, log: Path | None = None) -> str:
    """The text that means it."""
    words = [sys.executable, "-S", str(FAKE), protocol, behaviour, *([str(log)] if log else [])]
    return f"{protocol}:{' '.join(words)}"
