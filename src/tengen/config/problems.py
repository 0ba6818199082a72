"""The error for configurations that cannot be used."""

from collections.abc import Iterable

from tengen.errors import TengenError


class ConfigError(TengenError):
    """A configuration that cannot be used: one line for each problem."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))
