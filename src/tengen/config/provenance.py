"""Which code made a run, and when: the lines at the top of its configuration."""

import contextlib
import hashlib
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import tengen
from tengen import files, importing

FIRST = "# tengen "
"""The beginning of every configuration file that a run has written."""
CODE = "code"
"""The folder of a run with the differences of changed checkouts."""
_CHANGED = "+changes"
_LARGEST = 1_000_000  # bytes of a difference that are kept
_NAMED = 200  # files that git does not know
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


def keep_changes(base: Path) -> Path | None:
    """Keep how the checkout that this code runs from differs from its commit, in RUN/code; None if it does not.

    Each state of the code is kept once. Files that git does not know are named, not kept. Never fails.
    """
    commit = _commit()
    if commit is None or not commit.endswith(_CHANGED):
        return None
    difference = _git("diff", "HEAD", "--no-color", "--no-ext-diff") or ""
    unknown = (_git("ls-files", "--others", "--exclude-standard") or "").splitlines()[:_NAMED]
    text = "".join(f"# not known to git: {name}\n" for name in unknown) + f"{difference}\n"
    data = text.encode(errors="replace")
    if len(data) > _LARGEST:
        data = data[:_LARGEST] + b"\n# cut off here: the difference is larger\n"
    path = base / CODE / f"{commit[:12]}-{hashlib.sha256(data).hexdigest()[:8]}.diff"
    with contextlib.suppress(OSError):
        if not path.exists():
            files.make_folder(path.parent)
            files.write_bytes(path, data)
        return path
    return None


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
    return commit + (_CHANGED if _git("status", "--porcelain") else "")


def _git(*arguments: str) -> str | None:
    """The output of git in the checkout; None if it is empty or git fails."""
    command = ["git", "-C", str(_CHECKOUT), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None
