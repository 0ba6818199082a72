"""Arguments: how they are declared, and whole numbers among them."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from tengen.commands.arguments import Arg, count, declare, positive, whole


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


@pytest.mark.parametrize(
    ("argument", "words", "found"),
    [
        (Arg("NET"), ["runs"], {"net": "runs"}),
        (Arg("RUN*", type=Path, dest="runs"), ["a", "b"], {"runs": [Path("a"), Path("b")]}),
        (Arg("GAME?"), [], {"game": None}),
        (Arg("--dry-run"), [], {"dry_run": False}),
        (Arg("--dry-run"), ["--dry-run"], {"dry_run": True}),
        (Arg("--max-games N", type=positive, default=7), [], {"max_games": 7}),
        (Arg("--sgf --pgn FILE", dest="file"), ["--pgn", "x"], {"file": "x"}),
        (Arg("--format FORMAT OUT"), ["--format", "onnx", "a"], {"format": ["onnx", "a"]}),
        (Arg("--as", choices=("first", "second")), ["--as", "first"], {"as": "first"}),
        (Arg("--grid KEY=A,B,C", repeats=True), ["--grid", "a=1", "--grid", "b=2"], {"grid": ["a=1", "b=2"]}),
        (Arg("--grid KEY=A,B,C", repeats=True), [], {"grid": []}),
    ],
)
def test_how_an_argument_is_written(argument: Arg, words: list[str], found: dict[str, Any]) -> None:
    parser = argparse.ArgumentParser()
    declare(parser, ["a group", argument])
    assert vars(parser.parse_args(words)) == found
