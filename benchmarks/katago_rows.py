"""Reading KataGo's npz files next to reading the same rows from Tengen's own chunks, on one core.

    python benchmarks/katago_rows.py FOLDER_OR_NPZ ... --rows 8192

The rows of the files are repeated until there are enough, and written three times: as KataGo writes them (deflated), as
a chunk, and as a compressed chunk. Prints processor time per row and per byte, of the file, of the arrays in it, and of
those that are read: two of KataGo's are skipped. Then the ratios of KataGo's to the others (above 1: KataGo's files are
read faster). The files are read in turn, because a busy machine makes a core slower for seconds at a time.
"""

import argparse
import collections
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from tengen.data.format import katago, katago_writing
from tengen.data.format.chunk import read_chunk, write_chunk


def main() -> int:
    parser = argparse.ArgumentParser(description="Time of reading KataGo's files next to Tengen's own.")
    parser.add_argument("paths", nargs="+", type=Path, help="npz files of KataGo, or folders with some")
    parser.add_argument("--rows", type=int, default=8192, help="rows of a file (8192)")
    parser.add_argument("--repeats", type=int, default=25, help="the median counts (25)")
    args = parser.parse_args()
    found = [path for given in args.paths for path in (sorted(given.rglob("*.npz")) if given.is_dir() else [given])]
    parts = [dict(np.load(path)) for path in found]
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    which = np.arange(args.rows) % len(arrays["globalInputNC"])
    with tempfile.TemporaryDirectory() as name:
        theirs, ours, compressed = (Path(name) / f"{kind}.npz" for kind in ("katago", "tengen", "compressed"))
        katago_writing.write(theirs, {key: values[which] for key, values in arrays.items()})
        rows, meta = read_chunk(theirs)
        write_chunk(ours, meta.form, rows, meta.game, network="none")
        write_chunk(compressed, meta.form, rows, meta.game, network="none", compress=True)
        seconds = measure((theirs, ours, compressed), args.repeats)
        bytes_ = {path: sizes(path) for path in seconds}
    for path, each in seconds.items():
        stored, whole, used = bytes_[path]
        print(
            f"{path.stem:11} {each / args.rows * 1e6:6.2f} us a row; {stored / args.rows:6.0f} bytes of the file, "
            f"{stored / each / 1e6:5.0f} MB/s; {whole / args.rows:6.0f} of the arrays, {whole / each / 1e6:5.0f} MB/s; "
            f"{used / args.rows:6.0f} of those that are read, {used / each / 1e6:5.0f} MB/s"
        )
    for path in (ours, compressed):
        ratios = [seconds[path] / seconds[theirs] * bytes_[theirs][k] / bytes_[path][k] for k in range(3)]
        print(
            f"next to {path.stem}: {ratios[0]:.2f} per byte of the file, {ratios[1]:.2f} of the arrays, "
            f"{ratios[2]:.2f} of those that are read"
        )
    return 0


def sizes(path: Path) -> tuple[int, int, int]:
    """Bytes of a file, of the arrays in it, and of those that are read."""
    members = zipfile.ZipFile(path).infolist()
    used = sum(member.file_size for member in members if member.filename.removesuffix(".npy") not in katago.UNREAD)
    return path.stat().st_size, sum(member.file_size for member in members), used


def measure(paths: Sequence[Path], repeats: int) -> dict[Path, float]:
    """Seconds of the processor to read and check each file, in a thread that keeps the newest of what it has read.

    That is how a loader reads. If nothing were kept, the time would depend on what was freed just before: the system
    clears memory that it gives, and takes back what lies at the end.
    """
    times: dict[Path, list[float]] = {path: [] for path in paths}
    kept = collections.deque(maxlen=8 * len(paths))

    def read() -> None:
        for _ in range(repeats + 1):
            for path, found in times.items():
                began = time.thread_time()
                kept.append(read_chunk(path))
                found.append(time.thread_time() - began)

    reader = threading.Thread(target=read)
    reader.start()
    reader.join()
    return {path: median(found[1:]) for path, found in times.items()}  # the first time, the file may not be in memory


if __name__ == "__main__":
    sys.exit(main())
