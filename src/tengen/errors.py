"""Errors for users."""

from collections.abc import Iterable


class TengenError(Exception):
    """An error that the user can fix. The command line prints it without a traceback and exits with 2."""


class OptionError(TengenError, ValueError):
    """Invalid options of a game, or of anything else declared with `tengen.schema`."""


class Diverged(TengenError):
    """Numbers of the training are no longer finite, so it cannot continue."""

    BEGINNING = "training diverged"
    """The beginning of its message, also in the log of a process that ended with it."""

    @classmethod
    def at(cls, step: int, what: str) -> "Diverged":
        """The error for the step at which this was noticed."""
        return cls(f"{cls.BEGINNING} at step {step:,}: {what}")


class ConfigError(TengenError):
    """A configuration that cannot be used: one line for each problem."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))
