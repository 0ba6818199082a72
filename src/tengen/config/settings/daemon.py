"""What the daemon is told. A configuration spells all of it out. Needs no JAX."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from tengen import redact
from tengen.schema import setting

_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]{0,99}"


@dataclass(frozen=True)
class UploadSettings:
    """Where networks are handed on to. See docs/daemon.md."""

    kind: Literal["none", "copy", "command", "http"] = setting(
        "none", "nowhere, to a directory, to a command with the network's folder as last argument, or by HTTP PUT"
    )
    target: str | None = setting(
        None,
        "the directory, the command, or the address ({name} in it is the network's; null: for none); no passwords",
        pattern=r"[^\x00-\x1f]{1,1000}",
        words="a line of text, at most 1000 characters",
    )
    token_variable: str | None = setting(
        None,
        "http: environment variable that holds the token (null: no token)",
        words="the name of a variable, never the token itself",
    )
    timeout: float = setting(
        300.0, "seconds that a command may take, or that a receiver may be silent", low=0.1, high=86400
    )
    deadline: float = setting(
        3600.0,
        "http: seconds that one upload may take from beginning to end, before it is tried again",
        low=0.1,
        high=604800,
        before=3600.0,
    )
    first_pause: float = setting(
        1.0, "seconds before a failed upload is tried again; doubles each time, up to 10 minutes", low=0.01, high=600
    )

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for what does not go together."""
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
    """Whether it is an http or https address with a host, perhaps a port, and no user."""
    try:
        url = urlsplit(target)
        whole = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        return False
    return whole and "@" not in url.netloc and not any(character.isspace() for character in target)


@dataclass(frozen=True)
class DaemonSettings:
    """How the daemon waits for data, trains, exports and hands on. See docs/daemon.md."""

    data: str | None = setting(
        None,
        "folder that others write chunks to (null: RUN/selfplay)",
        pattern=r"[^\x00-\x1f]{1,1000}",
        words="a path",
    )
    chunks_per_network: int = setting(100, "new chunks before the next network is trained", low=1, high=10**7)
    steps_per_network: int = setting(1000, "steps that each network is trained for", low=1, high=10**9)
    validation: float = setting(0.05, "share of the chunks for validation, chosen by their names", low=0, high=0.9)
    test: float = setting(0.0, "share of the chunks that are kept for tests, chosen by their names", low=0, high=0.9)
    validation_rows: int = setting(8192, "rows that a validation looks at (0: none)", low=0, high=10**8)
    pool_chunks: int = setting(
        1000, "newest chunks that rows are drawn from, held in memory; at least what comes meanwhile", low=1, high=10**7
    )
    chunk_share: float = setting(1.0, "share of a chunk's rows taken each time it is drawn", low=1e-6, high=1)
    reservoir_rows: int = setting(
        50_000, "rows that are mixed before they are batches (0: in order)", low=0, high=10**9
    )
    readers: int = setting(2, "threads that read chunks", low=1, high=64)
    poll_seconds: float = setting(0.5, "seconds between two looks at the folder", low=0.01, high=3600)
    keep_networks: int | None = setting(
        None, "newest networks that are kept in RUN/models once they are handed on (null: all)", low=1, high=10**6
    )
    end_with_input: bool | None = setting(
        None, "whether a closed standard input ends it (null: unless it listens on a socket)"
    )
    upload: UploadSettings = setting(UploadSettings(), "where networks are handed on to")

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for what does not go together."""
        if self.validation + self.test >= 1:
            rest = 1 - self.validation
            yield "test", f"expected less than {rest:g}, since validation has the rest, got {self.test:g}"
