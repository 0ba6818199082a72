"""Which files are learnt from, and which are kept to see what was learnt: a matter of their names alone."""

from hashlib import md5
from typing import Literal

from tengen.config.settings.data import LoaderSettings

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


def split_of(name: str, validation: float, test: float = 0.0) -> Split:
    """Where a file of that name belongs, today and in every later run with these shares.

    A larger share for tests or validation only ever takes files from training. As in KataGo, validation has the names
    whose MD5, as a fraction, is highest.
    """
    digest = md5(name.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()
    place = int(digest[:13], 16) / 16**13
    if place >= 1 - validation:
        return "validation"
    return "test" if place < test else "train"


def share_of(split: Split, settings: LoaderSettings) -> float:
    """The share of all files that belongs to a split."""
    shares = {"validation": settings.validation, "test": settings.test}
    return shares.get(split, 1 - settings.validation - settings.test)
