"""Numbers on the command line, for the `type` of an argument."""

import argparse
from collections.abc import Callable


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A parser of whole numbers from `least` to `most`."""

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else -1
        if number < least or (most is not None and number > most):
            words = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"expected a whole number {words}, got {text[:40]!r}")
        return number

    return parse


def amount(noun: str, most: float) -> Callable[[str], float]:
    """A parser of numbers above 0, at most `most`; `noun` says of what, as "seconds"."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if not 0 < number <= most:
            raise argparse.ArgumentTypeError(f"expected {noun} above 0, at most {most:,g}, got {text[:40]!r}")
        return number

    return parse


count = whole(0)
positive = whole(1)
