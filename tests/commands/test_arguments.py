"""Whole numbers on the command line."""

import argparse

import pytest

from tengen.commands.arguments import count, positive, whole


def test_whole_numbers() -> None:
    assert [count("0"), positive("1"), positive("20000000000"), whole(2, 5)("5")] == [0, 1, 20_000_000_000, 5]


@pytest.mark.parametrize("text", ["", "0", "-3", "1.5", "many", "1_0", "٣", "9" * 16])
def test_anything_else(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected a whole number of at least 1, got"):
        positive(text)


def test_limits() -> None:
    for text in ("1", "6"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"expected a whole number from 2 to 5, got '{text}'"):
            whole(2, 5)(text)
