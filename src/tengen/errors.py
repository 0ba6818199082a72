"""Errors that are meant for the person at the keyboard, not for a programmer."""


class TengenError(Exception):
    """Something the user can put right. The command line prints it without a traceback and exits with 2."""


class OptionError(TengenError, ValueError):
    """Options that a game, or another thing declared with `tengen.schema`, cannot accept."""


class Diverged(TengenError):
    """The numbers of a training are not finite any more, so it cannot go on from here."""

    BEGINNING = "training diverged"
    """How its message begins, also in the log of a process that ended with it."""

    @classmethod
    def at(cls, step: int, what: str) -> "Diverged":
        """By the step at which that was found."""
        return cls(f"{cls.BEGINNING} at step {step:,}: {what}")
