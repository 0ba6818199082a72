"""Errors that are meant for the person at the keyboard, not for a programmer."""


class TengenError(Exception):
    """Something the user can put right. The command line prints it without a traceback and exits with 2."""


class OptionError(TengenError, ValueError):
    """Options that a game, or another thing declared with `tengen.schema`, cannot accept."""
