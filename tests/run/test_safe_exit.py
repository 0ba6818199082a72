"""Where a process may be ended, and what is done before."""

import threading
from collections.abc import Iterator

import pytest

from tengen.run import safe_exit


@pytest.fixture(autouse=True)
def free() -> Iterator[None]:
    """What has left keeps all others waiting; here the process goes on."""
    yield
    if safe_exit._lock.locked():
        safe_exit._lock.release()


def test_only_where_it_is_possible() -> None:
    done: list[str] = []
    with safe_exit.before(lambda: done.append("first")), safe_exit.before(lambda: done.append("second")):
        assert not safe_exit.leave()
        with safe_exit.possible(False):
            assert not safe_exit.leave()
        assert done == []
        with safe_exit.possible():
            assert safe_exit.leave()
            assert done == ["second", "first"]
            safe_exit._lock.release()
        assert not safe_exit.leave()
    with safe_exit.possible():
        done.clear()
        assert safe_exit.leave()
        assert done == [], "nobody wants anything any more"
        safe_exit._lock.release()


def test_whoever_works_waits_for_the_end() -> None:
    inside, go_on, after = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        with safe_exit.possible():
            inside.set()
            go_on.wait()
        after.set()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    assert safe_exit.leave()
    go_on.set()
    assert not after.wait(0.1), "the process is about to end"
    safe_exit._lock.release()
    thread.join()
    assert after.is_set()


def test_what_cannot_be_written_keeps_it() -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device")

    with safe_exit.possible():
        with safe_exit.before(fail):
            assert not safe_exit.leave()
        assert safe_exit.leave(), "and nobody was kept waiting"
        safe_exit._lock.release()
