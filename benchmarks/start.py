"""The start of a run: when the first move and the first step come, and what the main thread does until then.

    python benchmarks/start.py go9
    python benchmarks/start.py go9 --cache FOLDER --set net.growth=[]

Runs the configuration in a new folder with an empty cache of compiled programs (or `--cache`, for a second start) until
the first step of learning, and prints the seconds of each event. The main thread is sampled twenty times a second, and
the places where it spent the most time are printed, innermost line of Tengen last. What other threads compile meanwhile
costs nothing until the main thread waits for it.
"""

import argparse
import collections
import os
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import tengen

_PACKAGE = str(Path(tengen.__file__).parent)
_PAUSE = 0.05  # seconds between two looks
_DEPTH = 5  # lines of Tengen in a place

Places = collections.Counter[tuple[str, ...]]


def main() -> int:
    began = time.monotonic()
    args = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = args.cache or str(Path(folder) / "cache")
        from tengen.config import load
        from tengen.errors import TengenError
        from tengen.jax_setup import keep_compiled
        from tengen.loop.fused import Fused
        from tengen.monitor.display import Display
        from tengen.monitor.run_view import RunView
        from tengen.run import metrics

        class Silent(Display):
            def say(self, text: str) -> None:
                print(text, file=sys.stderr)

            def tick(self) -> None:
                pass

        try:
            keep_compiled()
            config, places, done = load(args.config, args.set), Places(), threading.Event()
            watcher = threading.Thread(target=_watch, args=(threading.get_ident(), places, done), daemon=True)
            watcher.start()
            with Fused(config, Path(folder) / "run", Silent(RunView(), 3600.0), began=began) as loop:
                loop.prepare()
                print(f"{time.monotonic() - began:7.1f} s  everything is built", flush=True)
                loop.run(lambda: loop.session.started or time.monotonic() - began > args.most)
            done.set()
            watcher.join()
            for line in metrics.read(Path(folder) / "run" / metrics.NAME).lines:
                if line.get("kind") == metrics.FIRST:
                    print(f"{line['elapsed']:7.1f} s  first {line['what']}")
        except TengenError as error:
            print(error, file=sys.stderr)
            return 2
    print("\nwhere the main thread was:")
    for place, looks in places.most_common(args.lines):
        print(f"{looks * _PAUSE:7.1f} s  {' > '.join(place) or 'outside of Tengen'}")
    return 0


def _watch(thread: int, places: Places, done: threading.Event) -> None:
    while not done.wait(_PAUSE):
        stack = traceback.extract_stack(sys._current_frames()[thread])
        own = [frame for frame in stack if frame.filename.startswith(_PACKAGE)]
        places[tuple(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in own[-_DEPTH:])] += 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What the start of a run does, and how long that takes.")
    parser.add_argument("config")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--cache", help="a cache folder, for a second start (a new one)")
    parser.add_argument("--lines", type=int, default=25, help="places to print (25)")
    parser.add_argument("--most", type=float, default=300.0, help="seconds after which to give up (300)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
