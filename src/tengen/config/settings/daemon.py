"""The section `daemon`: training on data that other programs write. See docs/daemon.md."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from tengen import redact
from tengen.config.settings.data import DiffFocusSettings, shares_too_large
from tengen.schema import setting

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
