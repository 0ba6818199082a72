"""Uncompressed tar files of chunks, read at the places of their members."""

import os
import tarfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tengen import files
from tengen.errors import OptionError

SUFFIX = ".tar"


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

    def read(self, name: str) -> bytes:
        """A file of the tar. OptionError if it is missing or cut off."""
        if name not in self.members:
            raise OptionError("there is no such file in the tar")
        offset, size = self.members[name]
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
        with files.open_buffered(path) as file, tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                if member.isreg():
                    members[member.name] = (member.offset_data, member.size)
    except (tarfile.TarError, EOFError, ValueError) as error:
        if not members:  # otherwise what comes before the damage can be used
            raise OptionError(f"not a good tar file: {error}") from None
    return TarFile(path, members)


def split_path(path: Path) -> tuple[Path, str | None]:
    """The tar that a path leads into, and the name of the file in it; (path, None) for an ordinary path."""
    for parent in path.parents:
        if parent.suffix == SUFFIX and parent.is_file():
            return parent, str(path.relative_to(parent))
    return path, None
