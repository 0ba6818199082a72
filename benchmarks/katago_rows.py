"""Reading KataGo's npz files next to reading the same rows from Tengen's own chunks, on one core.

    python benchmarks/katago_rows.py FOLDER_OR_NPZ ... --rows 8192

The rows of the files are repeated until there are enough, and written three times: as KataGo writes them (deflated), as
a chunk, and as a compressed chunk. Prints processor time per row and per byte, of the file and of the arrays in it, and
the ratios of KataGo's to the others (above 1: KataGo's files are read faster).
"""

import argparse
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from statistics import median

import numpy as np

from tengen.data.format import katago_writing
from tengen.data.format.chunk import read_chunk, write_chunk


def main() -> int:
    parser = argparse.ArgumentParser(description="Time of reading KataGo's files next to Tengen's own.")
    parser.add_argument("paths", nargs="+", type=Path, help="npz files of KataGo, or folders with some")
    parser.add_argument("--rows", type=int, default=8192, help="rows of a file (8192)")
    parser.add_argument("--repeats", type=int, default=9, help="the median counts (9)")
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
        seconds = {path: measure(path, args.repeats) for path in (theirs, ours, compressed)}
        bytes_ = {
            path: (path.stat().st_size, sum(i.file_size for i in zipfile.ZipFile(path).infolist())) for path in seconds
        }
    for path, each in seconds.items():
        stored, whole = bytes_[path]
        print(
            f"{path.stem:11} {each / args.rows * 1e6:6.2f} us a row; {stored / args.rows:6.0f} bytes of the file, "
            f"{stored / each / 1e6:5.0f} MB/s; {whole / args.rows:6.0f} bytes unpacked, {whole / each / 1e6:5.0f} MB/s"
        )
    for path in (ours, compressed):
        ratios = [seconds[path] / seconds[theirs] * bytes_[theirs][k] / bytes_[path][k] for k in (0, 1)]
        print(f"next to {path.stem}: {ratios[0]:.2f} per byte of the file, {ratios[1]:.2f} per byte unpacked")
    return 0


def measure(path: Path, repeats: int) -> float:
    """Seconds of the processor to read and check a file."""
    path.read_bytes()
    times = []
    for _ in range(repeats):
        began = time.process_time()
        read_chunk(path)
        times.append(time.process_time() - began)
    return median(times)


if __name__ == "__main__":
    sys.exit(main())
