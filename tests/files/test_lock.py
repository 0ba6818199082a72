"""Only one process at a time, or several that share, hold the lock of a folder."""

import contextlib
import errno
import subprocess
import sys
from pathlib import Path

import pytest

from tengen.errors import TengenError
from tengen.files import lock
from tengen.files.lock import locked
from tests.helpers.patience import LONG

HOLD = """
import sys
from pathlib import Path
from tengen.files.lock import locked
with locked(Path(sys.argv[1]), shared="shared" in sys.argv):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_one_process_at_a_time_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    base = tmp_path / "new" / "run"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(base)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(TengenError) as caught, locked(base):
            pass
        problem = str(caught.value)
        assert problem.startswith(f"{base}: is being used by process {holder.pid} on ")
        assert problem.endswith("; wait until it ends, or choose another --base")
    finally:
        holder.kill()
        holder.communicate()
    with locked(base):
        pass
    with locked(base):
        pass


def test_a_base_that_cannot_be_locked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(TengenError, match="is a file or lies below one"), locked(tmp_path / "file"):
        pass
    assert (tmp_path / "file").read_text() == "precious"


def test_file_systems_without_locks_are_used_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    with locked(tmp_path):
        pass


def test_those_that_share_a_run_keep_out_who_wants_it_alone(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), "shared"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with locked(tmp_path, shared=True), locked(tmp_path, shared=True):
            pass
        with pytest.raises(TengenError, match=r"is being used by process \d+ on .*another --base"), locked(tmp_path):
            pass
        with locked(tmp_path, name=".lock-other"):  # of its own kind
            pass
    finally:
        holder.kill()
        holder.communicate()
    with locked(tmp_path), pytest.raises(TengenError), locked(tmp_path, shared=True):
        pass
    with locked(tmp_path, shared=True):
        pass


def test_what_is_used_is_named(tmp_path: Path) -> None:
    with (
        locked(tmp_path, name=".lock-x"),
        pytest.raises(TengenError, match=r"^the cook: is being used by .*, or choose another --name$"),
        locked(tmp_path, name=".lock-x", what="the cook", other="--name"),
    ):
        pass


def test_waiting_until_the_other_process_has_ended(tmp_path: Path) -> None:
    attempts: list[int] = []

    def take() -> contextlib.AbstractContextManager[None]:
        attempts.append(len(attempts))
        if len(attempts) < 3:
            raise lock.InUse(tmp_path, "process 1", "--base")
        return lock.locked(tmp_path)

    with lock.waiting(take, LONG):
        assert attempts == [0, 1, 2]
    del attempts[:]
    with pytest.raises(lock.InUse), lock.waiting(take, LONG, lambda error: "process 1" in str(error)):
        pass
    with pytest.raises(lock.InUse), lock.waiting(take, 0.0):
        pass
    assert attempts == [0, 1]
