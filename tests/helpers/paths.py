"""Where things lie in the repository, and what child processes need to import Tengen and these tests."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS, EXAMPLES, BENCHMARKS = ROOT / "docs", ROOT / "examples", ROOT / "benchmarks"
IMPORTABLE = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
"""The PYTHONPATH of child processes."""
