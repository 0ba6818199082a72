"""Chunks in tars, as a public server publishes them, through the loader."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from tengen import data
from tengen.data.format import lc0, tars
from tengen.data.format.chunk import CorruptChunk
from tengen.data.loader.sources import ChunksAndTars, split_of
from tengen.errors import OptionError
from tests.data.format.test_lc0_rows import FORM
from tests.helpers.lc0_records import made
from tests.helpers.patience import LONG

NAME = "training-run1-test60-20240101-0117"


def fill(folder: Path, games: int) -> Path:
    """A tar of chunks, each with as many records as its number, a licence, and a chunk that is damaged."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{NAME}.tar"
    with tarfile.open(path, "w") as tar:
        where = tarfile.TarInfo(NAME)
        where.type = tarfile.DIRTYPE
        tar.addfile(where)
        contents = {f"training.{number}.gz": made(number).tobytes() for number in range(1, games + 1)}
        for name, content in {**contents, "LICENSE": b"text", "training.99.gz": b"\x06\0\0\0"}.items():
            info = tarfile.TarInfo(f"{NAME}/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_a_folder_of_tars_and_chunks(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    lc0.write(tmp_path / "training.200.gz", made(7))
    source = ChunksAndTars(data.Folder(tmp_path, (".gz", ".tar")))
    settings = data.LoaderSettings(batch=4, pool_chunks=20, start_chunks=6, poll_seconds=0.01)
    game = data.GameIdentity("chess", 1, {})
    with data.Loader(source, FORM, game, settings, read=lc0.reader(FORM)) as loader:
        loader.get_next_batch("train", LONG)
        counts = loader.counts()["train"]
        assert (counts.chunks, counts.rows) == (6, 1 + 2 + 3 + 4 + 5 + 7)
        (bad,) = loader.get_stats().last_rejected
        assert bad.path == tmp_path / f"{NAME}.tar" / NAME / "training.99.gz"
        assert bad.kind == "corrupt"
        state = loader.state()
    assert len(state["counted"]) == 6


def test_once_each_in_order_and_the_same_split_in_every_place(tmp_path: Path) -> None:
    path = fill(tmp_path, 5)
    source = ChunksAndTars(data.FileList([path]))
    settings = data.LoaderSettings(batch=100, validation=0.5)
    found = {}
    with data.Loader(source, FORM, data.GameIdentity("chess", 1, {}), settings, lc0.reader(FORM)) as loader:
        for split in ("train", "validation"):
            batch = loader.get_next_batch(split, LONG)
            found[split] = 0 if batch is None else len(batch[0])
    split = {number: split_of(f"training.{number}.gz", 0.5) for number in range(1, 6)}
    assert found == {kind: sum(n for n in split if split[n] == kind) for kind in ("train", "validation")}


def test_damaged_tars(tmp_path: Path) -> None:
    path = fill(tmp_path, 3)
    (tmp_path / "cut.tar").write_bytes(path.read_bytes()[:12_000])
    (tmp_path / "text.tar").write_bytes(b"no tar" * 1000)
    cut = tars.TarFile.of(tmp_path / "cut.tar")
    assert len(cut.read(f"{NAME}/training.1.gz", 8356)) == 8356
    with pytest.raises(OptionError, match=r"cut off|no such file"):
        cut.read(f"{NAME}/training.2.gz", 10**6)
    with pytest.raises(OptionError, match="not a good tar file"):
        tars.TarFile.of(tmp_path / "text.tar")
    (found,) = ChunksAndTars(data.FileList([tmp_path / "text.tar"])).look()
    assert found.path == tmp_path / "text.tar"
    assert np.array_equal([tars.split_path(path / "a" / "b.gz")], [(path, str(Path("a/b.gz")))])


def headers(*types: bytes, size: int) -> bytes:
    """Headers of these types in a tar, which say that this many bytes follow."""
    found = b""
    for kind in types:
        info = tarfile.TarInfo("training.1.gz")
        info.size, info.type = size, kind
        found += info.tobuf(tarfile.GNU_FORMAT)
    return found


@pytest.mark.parametrize(
    ("content", "apparent", "message"),
    [
        (headers(tarfile.REGTYPE, size=2**40), 2048, "1,099,511,627,776 bytes in the tar"),
        (headers(tarfile.XHDTYPE, size=2**40), 2**41, "not a good tar file: a header of 1,099,511,627,776 bytes"),
        (headers(tarfile.GNUTYPE_LONGNAME, size=2**40), 2**41, "not a good tar file: a header of"),
        (headers(*[tarfile.XHDTYPE] * 2000, size=0), 2**20, "not a good tar file"),
        (headers(tarfile.SYMTYPE, size=0), 2048, "there is no such file in the tar"),
        (headers(tarfile.FIFOTYPE, size=0), 2048, "there is no such file in the tar"),
    ],
)
def test_tars_that_lie_about_their_sizes(tmp_path: Path, content: bytes, apparent: int, message: str) -> None:
    path = tmp_path / "bad.tar"
    with path.open("wb") as file:
        file.write(content)
        file.truncate(apparent)
    with pytest.raises(CorruptChunk, match=message):
        lc0.content(path / "training.1.gz")


def test_a_file_that_is_larger_than_any_game(tmp_path: Path) -> None:
    path = tmp_path / "training.1.gz"
    with path.open("wb") as file:
        file.write(b"\x1f\x8b")
        file.truncate(2**41)
    with pytest.raises(CorruptChunk, match="more than 167,120,000 bytes, which no game has"):
        lc0.content(path)
