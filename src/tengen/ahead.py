"""Compiling programs before they are needed, several at a time: XLA compiles without Python's lock.

JAX keeps what is compiled here, so the first call finds it, if its arguments have the same shapes and places.
"""

import contextlib
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any
from weakref import WeakSet

import jax

from tengen.cores import cores

_MOST = 8  # programs at once; XLA uses several threads for each
Jobs = tuple[Future[Any], ...]


class Ahead(contextlib.AbstractContextManager):
    """Threads that compile. However a run ends, it closes this: Python must not end while XLA compiles."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(min(_MOST, max(len(cores()), 2)), "compiling")
        self._jobs: WeakSet[Future[Any]] = WeakSet()  # results are not kept for its sake

    def __exit__(self, *problem: object) -> None:
        self._threads.shutdown(cancel_futures=True)

    @property
    def compiles(self) -> bool:
        """Whether something is being compiled, which nothing can interrupt."""
        return any(job.running() for job in self._jobs)

    def compile(self, programs: Iterable[Any]) -> Jobs:
        """Compile lowered programs; each is traced here, by the iterator, while those before it are compiled."""
        return tuple(self._submit(program.compile) for program in programs)

    def call(self, function: Callable[[], object]) -> Jobs:
        """Call a function that traces and compiles, in a thread."""
        return (self._submit(function),)

    def _submit(self, function: Callable[[], object]) -> Future[Any]:
        job = self._threads.submit(function)
        self._jobs.add(job)
        return job


def done(jobs: Jobs) -> bool:
    return all(job.done() for job in jobs)


def finish(jobs: Jobs) -> None:
    """Wait until these are compiled, or have failed: errors are left to the first call, which compiles again."""
    wait(jobs)


def finish_begun(jobs: Jobs) -> None:
    """Wait for those that are being compiled. What still waits for a thread is left to the first call, too."""
    wait([job for job in jobs if not job.cancel()])


def shapes_on(place: Any, tree: Any) -> Any:
    """The shapes of arrays that will be on this device or have this sharding, to trace a function with."""
    sharding = place if isinstance(place, jax.sharding.Sharding) else jax.sharding.SingleDeviceSharding(place)
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree)
