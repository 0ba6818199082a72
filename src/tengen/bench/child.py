"""One benchmark in a process of its own: `python -m tengen.bench.child PART MACHINE`.

It writes JSON lines to standard output, so that what was measured is kept if the process is killed: `machine`, `doing`
(what is being measured), `figure`, and `error` (a measurement that failed; the others go on). All else that is printed
goes to standard error. Without a part it only tells which machine this is.
"""

import dataclasses
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from tengen import schema
from tengen.bench import parts
from tengen.bench.figures import Machine
from tengen.jax_setup import keep_compiled


def main(words: list[str]) -> int:
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(**message: Any) -> None:
        print(json.dumps(message), file=lines, flush=True)

    if words[:1] != ["loop"]:  # which measures a process of its own, with a cache of its own
        keep_compiled()  # a device that does not work is explained
    if not words:
        import jax

        devices = jax.local_devices()
        found = Machine(devices[0].device_kind, jax.default_backend(), len(devices), jax.__version__)
        tell(machine=dataclasses.asdict(found))
        return 0
    part, machine = parts.find(words[0]), schema.from_json(Machine, words[1])
    return measure(part.jobs(machine.backend == "cpu"), tell)


def measure(jobs: Iterable[parts.Job], tell: Callable[..., None], errors: TextIO | None = None) -> int:
    """Do the jobs one after the other; the exit code."""
    failed = False
    for words, function in jobs:
        tell(doing=words)
        try:
            for figure in function():
                if not 0 < figure.value < float("inf"):
                    raise ValueError(f"{figure.name}: {figure.value} is not a measurement")
                tell(figure=dataclasses.asdict(figure))
        except Exception as error:
            traceback.print_exc(file=errors)
            failed = True
            tell(error=f"{words}: {(str(error).strip().splitlines() or [type(error).__name__])[0][:300]}")
    return 1 if failed else 0


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
