"""Where a process may be ended, and what is done before."""

import threading
from collections.abc import Iterator

import pytest

from tengen.loop import leaving


@pytest.fixture(autouse=True)
def free() -> Iterator[None]:
    """What has left keeps all others waiting; here the process goes on."""
    yield
    if leaving._lock.locked():
        leaving._lock.release()


def test_only_where_it_is_possible() -> None:
    done: list[str] = []
    with leaving.before(lambda: done.append("first")), leaving.before(lambda: done.append("second")):
        assert not leaving.leave()
        with leaving.possible(False):
            assert not leaving.leave()
        assert done == []
        with leaving.possible():
            assert leaving.leave()
            assert done == ["second", "first"]
            leaving._lock.release()
        assert not leaving.leave()
    with leaving.possible():
        done.clear()
        assert leaving.leave()
        assert done == [], "nobody wants anything any more"
        leaving._lock.release()


def test_whoever_works_waits_for_the_end() -> None:
    inside, go_on, after = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        with leaving.possible():
            inside.set()
            go_on.wait()
        after.set()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    assert leaving.leave()
    go_on.set()
    assert not after.wait(0.1), "the process is about to end"
    leaving._lock.release()
    thread.join()
    assert after.is_set()


def test_what_cannot_be_written_keeps_it() -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device")

    with leaving.possible():
        with leaving.before(fail):
            assert not leaving.leave()
        assert leaving.leave(), "and nobody was kept waiting"
        leaving._lock.release()
