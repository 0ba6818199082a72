"""Programs compiled before they are needed."""

import threading

from tengen import ahead
from tengen.ahead import Ahead


def test_what_has_begun_is_waited_for_and_the_rest_is_left_to_the_first_call() -> None:
    begun, go_on, called = threading.Event(), threading.Event(), []

    def slow() -> None:
        begun.set()
        go_on.wait(60)
        called.append("slow")

    with Ahead() as threads:
        busy = [threads.call(slow) for _ in range(ahead._MOST)]  # as many as there may be threads, at least
        begun.wait(60)
        assert threads.compiles
        waiting = threads.call(lambda: called.append("late"))
        ahead.finish_begun(waiting)  # does not wait for a thread
        assert called == []
        go_on.set()
        ahead.finish_begun(busy[0])
        assert called[:1] == ["slow"]
        for jobs in busy:
            ahead.finish(jobs)
        assert not threads.compiles
    assert "late" not in called
