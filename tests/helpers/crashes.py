"""What `kill -9` would leave of a run: copies of its directory, made while it is written to."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tengen import files
from tengen.run import part_status
from tengen.train.checkpoints import Checkpoints

# Whatever is written counts on what stands further right being there. A copy is no single moment, so it is made from
# left to right: what it has of one thing, it has of all that this counts on.
_ORDER = ("config.yaml", "ratings", "models", "train", "games", "selfplay", "metrics.jsonl")


def copy(base: Path, target: Path) -> Path:
    """The directory as a process that is killed now would leave it."""
    for name in _ORDER:
        source = base / name
        if source.is_dir():
            shutil.copytree(source, target / name, copy_function=_copy, ignore_dangling_symlinks=True)
        elif source.exists():
            target.mkdir(parents=True, exist_ok=True)
            _copy(str(source), str(target / name))
    return target


def _copy(source: str, target: str) -> None:
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:  # renamed meanwhile: killed before it was
        return


class Photographer:
    """Copies the directory `base` to folders in `album`, before and in the middle of whatever is written."""

    def __init__(self, base: Path, album: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.base, self.album = base, album
        self.copies: dict[str, list[Path]] = {}
        self._write, self._save = files.write_bytes, Checkpoints.save
        monkeypatch.setattr(files, "write_bytes", self._slowly)
        monkeypatch.setattr(Checkpoints, "save", self._saving(Checkpoints.save))

    def take(self, what: str) -> None:
        copies = self.copies.setdefault(what, [])
        try:
            copies.append(copy(self.base, self.album / f"{what}-{len(copies)}"))
        except shutil.Error:  # orbax has renamed a folder under our hands
            shutil.rmtree(self.album / f"{what}-{len(copies)}")

    def _slowly(self, path: Path, data: bytes) -> None:
        """`files.write_bytes`, interrupted when half is written. Copies have no notices, which are just written."""
        if path.parent.name == part_status.FOLDER:
            self._write(path, data)
            return
        kinds = {".npz": "chunk", ".safetensors": "model", ".jsonl": "result", ".svg": "chart", ".png": "chart"}
        what = kinds.get(path.suffix, "record")
        half = path.with_name(f".{path.name}.12345678.part")
        half.write_bytes(data[: len(data) // 2])
        self.take(what)
        half.unlink()
        self._write(path, data)

    def _saving(self, save: Callable[..., None]) -> Any:
        def photographed(checkpoints: Checkpoints, checkpoint: Any) -> None:
            self.take("before-checkpoint")
            save(checkpoints, checkpoint)
            self.take("checkpoint")  # which is being written by another thread

        return photographed
