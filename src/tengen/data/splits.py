"""Which files are learnt from, and which are kept to see what was learnt: a matter of their names alone."""

from hashlib import blake2b
from typing import Literal

from tengen.data.settings import LoaderSettings

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


def split_of(name: str, settings: LoaderSettings) -> Split:
    """Where a file of that name belongs, today and in every later run with these shares.

    A larger share for tests or validation only ever takes files from the splits behind it (test, validation, train).
    """
    digest = blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    place = int.from_bytes(digest, "big") / 2**64
    if place < settings.test:
        return "test"
    return "validation" if place < settings.test + settings.validation else "train"


def share_of(split: Split, settings: LoaderSettings) -> float:
    """The share of all files that belongs to a split."""
    shares = {"validation": settings.validation, "test": settings.test}
    return shares.get(split, 1 - settings.validation - settings.test)
