"""Which code made a run, and when: the lines at the top of its configuration."""

import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import tengen
from tengen import importing

FIRST = "# tengen "
"""The beginning of every configuration file that a run has written."""
_CHECKOUT = Path(tengen.__file__).resolve().parents[2]


def lines() -> tuple[str, ...]:
    """The versions of Tengen, Python and JAX, the time, and the folders of the modules of users. Never fails."""
    commit = _commit()
    return (
        f"tengen {tengen.__version__}" + (f", commit {commit}" if commit else ""),
        f"python {platform.python_version()}, jax {_version('jax')}",
        f"written {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
        *importing.noted_folders(),
    )


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _commit() -> str | None:
    """The commit of the checkout that this code runs from; None if it was installed some other way."""
    if not (_CHECKOUT / ".git").exists():
        return None
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return None
    return commit + ("+changes" if _git("status", "--porcelain") else "")


def _git(*arguments: str) -> str | None:
    """The output of git in the checkout; None if it is empty or git fails."""
    command = ["git", "-C", str(_CHECKOUT), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None
