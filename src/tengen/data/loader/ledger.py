"""What the loader has seen: chunks and rows of each split, over restarts, and files that are no good."""

import threading
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from tengen.data.format import chunk
from tengen.data.loader.sources import FileSource, FoundFile
from tengen.data.loader.splits import SPLITS, Split
from tengen.errors import OptionError

Kind = Literal["corrupt", "foreign", "unreadable"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_NAMED = 100  # rejected files that are remembered by name


class RejectedFile(NamedTuple):
    """A file that was set aside, and stays where it is."""

    path: Path
    kind: Kind
    reason: str


@dataclass(frozen=True)
class SplitCounts:
    """How much one split has had. A file is counted once, however often it is read, found or renamed."""

    chunks: int = 0  # good ones
    rows: int = 0  # in those
    batches: int = 0  # that were asked for and given


class LoaderLedger:
    """The counts, for several threads."""

    def __init__(self, source: FileSource) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._counts: dict[Split, SplitCounts] = dict.fromkeys(SPLITS, SplitCounts())
        self._counted: set[str] = set()  # keys of files
        self._kinds: Counter[Kind] = Counter()
        self._rejected: deque[RejectedFile] = deque(maxlen=_NAMED)

    def accept(self, split: Split, found: FoundFile, rows: int) -> None:
        """A good chunk was read."""
        with self._lock:
            if found.key not in self._counted:
                self._counted.add(found.key)
                counts = self._counts[split]
                self._counts[split] = replace(counts, chunks=counts.chunks + 1, rows=counts.rows + rows)

    def reject(self, found: FoundFile, error: chunk.ChunkError) -> None:
        """A file is no good."""
        kinds: dict[type, Kind] = {chunk.CorruptChunk: "corrupt", chunk.ForeignChunk: "foreign"}
        rejected = RejectedFile(found.path, kinds.get(type(error), "unreadable"), str(error))
        with self._lock:
            self._kinds[rejected.kind] += 1
            self._rejected.append(rejected)

    def hand_out(self, split: Split) -> None:
        """A batch was given."""
        with self._lock:
            self._counts[split] = replace(self._counts[split], batches=self._counts[split].batches + 1)

    def counts(self) -> dict[Split, SplitCounts]:
        with self._lock:
            return dict(self._counts)

    def kinds(self) -> dict[Kind, int]:
        """How many files were rejected, by kind."""
        with self._lock:
            return {kind: self._kinds[kind] for kind in KINDS}

    def rejected(self) -> tuple[RejectedFile, ...]:
        """The last hundred that were rejected, oldest first."""
        with self._lock:
            return tuple(self._rejected)

    def state(self) -> dict[str, Any]:
        """The counts and which files they are of, in JSON values. Files that have gone are forgotten."""
        with self._lock:
            self._counted = self._source.present(self._counted)
            counts = {split: asdict(counts) for split, counts in self._counts.items()}
            return {"counts": counts, "counted": sorted(self._counted)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on counting from `state()`. OptionError if that is none."""
        try:
            counts: dict[Split, SplitCounts] = {split: SplitCounts(**state["counts"][split]) for split in SPLITS}
            counted = {str(key) for key in state["counted"]}
            whole = all(
                type(value) is int and value >= 0 for each in counts.values() for value in asdict(each).values()
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise OptionError(f"loader state: expected what state() gave, got something else: {error!r}") from error
        if not whole:
            raise OptionError("loader state: counts: expected whole numbers of at least 0")
        with self._lock:
            self._counts, self._counted = counts, counted
