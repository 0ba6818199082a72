"""Uncompressed tar files of chunks, read at the places of their members."""

import os
import tarfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from tengen import files
from tengen.errors import OptionError
from tengen.files.packed import SmallReads

SUFFIX = ".tar"
_HEADER_LIMIT = 2**20  # bytes of a long name or of other facts about a file, which are read at once


@dataclass(frozen=True)
class TarFile:
    """A tar and where its files are."""

    path: Path
    members: dict[str, tuple[int, int]]  # name -> offset, size

    @staticmethod
    def of(path: Path) -> "TarFile":
        """The tar at a path, indexed once. OptionError if it is damaged before its first file."""
        status = path.stat()
        return _indexed(path, status.st_mtime_ns, status.st_size)

    def read(self, name: str, most: int) -> bytes:
        """A file of the tar. OptionError if it is missing, cut off, or longer than `most` bytes."""
        if name not in self.members:
            raise OptionError("there is no such file in the tar")
        offset, size = self.members[name]
        if not 0 <= size <= most:
            raise OptionError(f"{size:,} bytes in the tar, expected at most {most:,}")
        with files.open_regular(self.path) as file:
            data = os.pread(file.fileno(), size, offset)
        if len(data) < size:
            raise OptionError("the tar is cut off")
        return data


@lru_cache(maxsize=256)
def _indexed(path: Path, changed: int, size: int) -> TarFile:
    del changed, size  # they only tell whether it is still the same file
    members: dict[str, tuple[int, int]] = {}
    try:
        with (
            files.open_buffered(path) as file,
            tarfile.open(fileobj=cast(Any, SmallReads(file, _HEADER_LIMIT)), mode="r:") as tar,
        ):
            for member in tar:
                if member.isreg():
                    members[member.name] = (member.offset_data, member.size)
    except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError) as error:
        if not members:  # otherwise what comes before the damage can be used
            raise OptionError(f"not a good tar file: {error}") from None
    return TarFile(path, members)


def split_path(path: Path) -> tuple[Path, str | None]:
    """The tar that a path leads into, and the name of the file in it; (path, None) for an ordinary path."""
    for parent in path.parents:
        if parent.suffix == SUFFIX and parent.is_file():
            return parent, str(path.relative_to(parent))
    return path, None
