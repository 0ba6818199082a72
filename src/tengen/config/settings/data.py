"""The sections `data` (the training window, chunks and records) and `daemon`; and the settings of the loader."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from tengen import redact
from tengen.schema import REQUIRED, setting


@dataclass(frozen=True)
class WindowSettings:
    """How many of the newest rows are trained on. The defaults are KataGo's, for a run on one machine."""

    min_rows: int = setting(100_000, "rows before the window begins to slide", low=1, high=10**12)
    max_rows: int | None = setting(None, "largest window (null: no limit)", low=1, high=10**12)
    exponent: float = setting(
        0.65, "the window grows with the rows of the run to this power (1: linearly)", low=0.01, high=1
    )
    growth: float = setting(0.4, "rows by which the window grows per new row at first", low=0, high=1)
    scale: int | None = setting(
        50_000, "rows over which the growth slows down; fewer: sooner (null: min_rows)", low=1, high=10**12
    )

    def check_together(self) -> Iterator[tuple[str, str]]:
        if self.max_rows is not None and self.max_rows < self.min_rows:
            yield "max_rows", f"expected at least min_rows, which is {self.min_rows}, got {self.max_rows}"


@dataclass(frozen=True)
class DataSection:
    window: WindowSettings = setting(REQUIRED, "how many of the newest rows are trained on")
    ring_rows: int = setting(
        REQUIRED, "rows kept on the device; the window is never larger", low=64, high=10**9, change="start"
    )
    first_rows: int = setting(REQUIRED, "rows before training begins", low=1, high=10**9)
    chunk_rows: int = setting(REQUIRED, "approximate rows in a file; games are never split", low=1, high=10**7)
    max_chunk_rows: int = setting(
        REQUIRED, "larger files are not read", low=10_000, high=10**8, before=1_000_000, change="start"
    )
    format: Literal["tengen", "katago", "lc0"] = setting(
        REQUIRED,
        "files of self-play: Tengen's own, or those that KataGo or Lc0 train on",
        before="tengen",
        change="start",
    )
    record_share: float = setting(REQUIRED, "share of the games saved as game records", low=0, high=1)


@dataclass(frozen=True)
class DiffFocusSettings:
    """Which positions of Lc0's chunks are used: rather those whose value or policy the search has changed.

    A position is used with the probability (difference * slope + least) ** power, at most 1, where the difference is
    (q_weight * |best_q - orig_q| + policy_kld) / (q_weight + policy_scale). If it is unknown, the position is used.
    """

    slope: float = setting(1.0, "by how much a difference of 1 raises the probability", low=0, high=1e6)
    least: float = setting(0.0, "probability without a difference", low=0, high=1)
    power: float = setting(1.0, "exponent", low=0, high=100)
    q_weight: float = setting(6.0, "weight of the difference in value", low=0, high=1e6)
    policy_scale: float = setting(3.5, "what is added to q_weight in the divisor", low=1e-6, high=1e6)


@dataclass(frozen=True)
class LoaderSettings:
    """How files become batches. docs/loader.md explains the costs."""

    batch: int = setting(4096, "rows in a batch", low=1, high=2**20)
    rest: Literal["short", "pad", "drop"] = setting(
        "short", "the last rows, if too few for a batch: a short batch, one padded with rows of weight 0, or none"
    )
    validation: float = setting(0.0, "share of the files for validation, chosen by their names", low=0, high=0.9)
    test: float = setting(0.0, "share of the files for tests, chosen by their names", low=0, high=0.9)
    pool_chunks: int = setting(
        0, "newest chunks in memory that rows are drawn from (0: each chunk once, in order)", low=0, high=10**7
    )
    start_chunks: int = setting(1, "chunks in the pool before an endless source is used", low=1, high=10**7)
    chunk_share: float = setting(1.0, "share of a chunk's rows used each time it is drawn", low=1e-6, high=1)
    reservoir_rows: int = setting(0, "rows mixed at a time (0: in order)", low=0, high=10**9)
    readers: int = setting(2, "threads that read files", low=1, high=64)
    queue: int = setting(4, "items that may wait between two stages", low=1, high=1000)
    poll_seconds: float = setting(1.0, "seconds between two checks of a folder", low=0.001, high=3600)
    seed: int = setting(0, "seed of its random numbers", low=0, high=2**63 - 1)

    def check_together(self) -> Iterator[tuple[str, str]]:
        yield from shares_too_large(self.validation, self.test)
        if self.pool_chunks and self.start_chunks > self.pool_chunks:
            yield "start_chunks", f"expected at most pool_chunks, which is {self.pool_chunks}, got {self.start_chunks}"


def shares_too_large(validation: float, test: float) -> Iterator[tuple[str, str]]:
    """(key, message) if nothing is left to train on."""
    if validation + test >= 1:
        yield "test", f"expected less than {1 - validation:g}, since validation has the rest, got {test:g}"


_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]{0,99}"


@dataclass(frozen=True)
class UploadSettings:
    kind: Literal["none", "copy", "command", "http"] = setting(
        "none",
        "send nothing, copy to a directory, run a command with the network's folder as last argument, or HTTP PUT",
    )
    target: str | None = setting(
        None,
        "directory, command or address ({name} becomes the network's name; null for none); no passwords",
        pattern=r"[^\x00-\x1f]{1,1000}",
        words="a line of text, at most 1000 characters",
    )
    token_variable: str | None = setting(
        None,
        "http: environment variable with the token (null: no token)",
        words="the name of a variable, never the token itself",
    )
    timeout: float = setting(
        300.0, "seconds that a command may run, or that a receiver may be silent", low=0.1, high=86400
    )
    deadline: float = setting(
        3600.0, "http: seconds for one upload before it is tried again", low=0.1, high=604800, before=3600.0
    )
    first_pause: float = setting(
        1.0, "seconds before a failed upload is repeated; doubles each time, up to 10 minutes", low=0.01, high=600
    )

    def check_together(self) -> Iterator[tuple[str, str]]:
        if (self.target is None) != (self.kind == "none"):
            found = "null" if self.target is None else redact.hide(self.target)
            yield "target", f"expected {'null' if self.kind == 'none' else 'one'} for kind {self.kind}, got {found}"
        elif self.target is not None:
            yield from self._check_target(self.target)
        if self.token_variable is None:
            return
        # A token that was put here by mistake is not repeated.
        if self.kind != "http":
            yield "token_variable", f"expected null for kind {self.kind}"
        elif not re.fullmatch(_VARIABLE, self.token_variable):
            yield "token_variable", "expected the name of an environment variable, never the token itself"

    def _check_target(self, target: str) -> Iterator[tuple[str, str]]:
        secret = redact.secret_in(target)
        if secret is not None:
            if self.kind != "http":
                instead = "let the command read it from an environment variable or a file"
            elif secret.startswith("the value"):
                instead = f"write {redact.TOKEN} in its place and name an environment variable in token_variable"
            else:
                instead = "put it into an environment variable and name that in token_variable"
            yield "target", f"expected no secrets, because this is written to files, but found {secret}; {instead}"
        elif self.kind == "http" and not _is_address(target):
            shown = redact.hide(target)
            yield "target", f"expected an address such as https://example.org/networks, got {shown}"
        elif self.kind == "http" and redact.TOKEN in target and self.token_variable is None:
            yield "token_variable", f"expected a variable for the {redact.TOKEN} in target, got null"


def _is_address(target: str) -> bool:
    """Whether it is an http or https address with a host and without a user."""
    try:
        url = urlsplit(target)
        whole = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        return False
    return whole and "@" not in url.netloc and not any(character.isspace() for character in target)


@dataclass(frozen=True)
class DaemonLoaderSettings:
    """How chunks become batches: the loader's settings (docs/loader.md) that the daemon leaves to its users."""

    pool_chunks: int = setting(1000, "newest chunks in memory that rows are drawn from", low=1, high=10**7)
    chunk_share: float = setting(1.0, "share of a chunk's rows used each time it is drawn", low=1e-6, high=1)
    reservoir_rows: int = setting(50_000, "rows mixed at a time (0: in order)", low=0, high=10**9)
    readers: int = setting(2, "threads that read chunks", low=1, high=64)
    diff_focus: DiffFocusSettings | None = setting(
        None, "chunks of Lc0: positions that the search has changed are preferred (null: all alike)", before=None
    )


@dataclass(frozen=True)
class DaemonSettings:
    moved: ClassVar = {name: f"loader.{name}" for name in ("pool_chunks", "chunk_share", "reservoir_rows", "readers")}

    data: str | None = setting(
        None,
        "folder with the chunks (null: RUN/selfplay)",
        pattern=r"[^\x00-\x1f]{1,1000}",
        words="a path",
        change="start",
    )
    chunks_per_network: int = setting(100, "new chunks before the next network is trained", low=1, high=10**7)
    steps_per_network: int = setting(1000, "training steps per network", low=1, high=10**9)
    validation: float = setting(
        0.05, "share of the chunks for validation, chosen by their names", low=0, high=0.9, change="start"
    )
    test: float = setting(0.0, "share of the chunks for tests, chosen by their names", low=0, high=0.9, change="start")
    validation_rows: int = setting(8192, "rows used for one validation (0: none)", low=0, high=10**8)
    poll_seconds: float = setting(0.5, "seconds between two checks of the folder", low=0.01, high=3600, change="start")
    keep_networks: int | None = setting(
        None, "newest networks kept in RUN/models after they are sent (null: all)", low=1, high=10**6
    )
    end_with_input: bool | None = setting(
        None, "end when standard input is closed (null: unless it listens on a socket)", change="start"
    )
    loader: DaemonLoaderSettings = setting(DaemonLoaderSettings(), "how chunks become batches", change="start")
    upload: UploadSettings = setting(UploadSettings(), "where finished networks are sent", change="start")

    def check_together(self) -> Iterator[tuple[str, str]]:
        yield from shares_too_large(self.validation, self.test)
