"""Text for people, printed the same way everywhere: durations, rates, sizes, counts, and the name of this program."""

import os
import shutil
import sys
from collections.abc import Sequence

NAMED = 5
"""How many files are named at a time when something is to be said about each."""


def program() -> str:
    """How the user can call Tengen: `.venv/bin/tengen` if it was called so, and no `tengen` would be found."""
    called = sys.argv[0] if sys.argv else ""
    is_path = os.path.basename(called) == "tengen" and os.path.dirname(called)
    return called if is_path and shutil.which("tengen") is None else "tengen"


def clock(seconds: float) -> str:
    """00:02:10, with days in front where there are any."""
    if not 0 <= seconds < 1e12:
        return "--:--:--"
    days, rest = divmod(int(seconds), 86_400)
    return (f"{days}d " if days else "") + f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def short_clock(seconds: float | None) -> str:
    """3:01, 1:03:01 or 2d 03:04:05; empty for None."""
    text = "" if seconds is None else clock(seconds).removeprefix("00:")
    return text[1:] if text.startswith("0") else text


def duration(seconds: float) -> str:
    """In one unit, rounded: 45 seconds, 3 minutes, 2 hours."""
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= (size if unit == "minute" else 2 * size):
            return counted(round(seconds / size), unit)
    return counted(round(seconds), "second")


def age(seconds: float) -> str:
    """At most four characters: 12s, 5m, 3h, 12d."""
    if not 0 <= seconds < 1e12:
        return "?"
    for size, letter in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{letter}"
    return f"{int(seconds)}s"


def rate(per_second: float | None) -> str:
    """1,204/s, 9.1/s or 0.25/s; empty for None."""
    if per_second is None:
        return ""
    if 0 < abs(per_second) < 1:
        return f"{per_second:.2g}/s"
    return f"{per_second:,.0f}/s" if abs(per_second) >= 100 else f"{per_second:.1f}/s"


def in_bytes(count: float) -> str:
    """1.2 MB for 1,234,567 bytes."""
    for power, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")):
        if count >= 1000**power:
            return f"{count / 1000**power:,.1f} {unit}"
    return f"{count} bytes"


def short(number: float | None) -> str:
    """At most six characters: 9,999, 12.3k, 1.23M; empty for None."""
    if number is None:
        return ""
    magnitude = abs(number)
    if not magnitude < 1e15:  # also NaN
        return "?"
    for least, unit, letter in ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if magnitude >= least:
            scaled = number / unit
            return f"{scaled:.{0 if abs(scaled) >= 100 else 1 if abs(scaled) >= 10 else 2}f}{letter}"
    if isinstance(number, int) or magnitude >= 100 or magnitude == 0:
        return f"{number:,.0f}"
    return f"{number:.1f}" if magnitude >= 1 else f"{number:.2g}"


def short_rate(per_second: float | None) -> str:
    """At most eight characters: 12.3k/s; empty for None."""
    return "" if per_second is None else f"{short(float(per_second))}/s"


def figure(value: float) -> str:
    """A loss or a mean: two decimals, or two significant digits where those would be zeros."""
    return f"{value:.2g}" if 0 < abs(value) < 0.1 else f"{value:,.2f}"


def counted(count: float, noun: str) -> str:
    """1 game, 2 games, 1.5 minutes."""
    number = f"{count:,}" if isinstance(count, int) else f"{count:,g}"
    return f"{number} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """games, days, inaccuracies."""
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"


def printable(text: str) -> str:
    """The text with spaces in place of newlines and control characters, on which a terminal would act."""
    return "".join(c if c.isprintable() else " " for c in text)


def first_few(lines: Sequence[str], rest: str, count: int | None = None) -> list[str]:
    """The first lines, and "and 3 more files are ..." (`rest`) for the others, of `count` in all if some are absent."""
    more = (len(lines) if count is None else count) - NAMED
    return [
        *lines[:NAMED],
        *([f"and {counted(more, 'more file')} {'is' if more == 1 else 'are'} {rest}"] if more > 0 else []),
    ]
