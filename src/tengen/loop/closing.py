"""What every run lets go of at the end of its `with`."""

import contextlib
from typing import Self

from tengen.errors import TengenError


class Closing:
    """Has things to close: `self._closing.enter_context(...)`, in whatever order they were opened."""

    def __init__(self) -> None:
        self._closing = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._closing.close()
        else:  # what went wrong first is what the reader must see
            with contextlib.suppress(TengenError):
                self._closing.close()
