import shutil
import subprocess

import pytest

from tengen.engine.gtp.go_commands import fixed_handicap, most_fixed
from tengen.engine.gtp.protocol import GtpError
from tengen.games.text import GO_LETTERS
from tests.helpers.patience import LONG

GNUGO = shutil.which("gnugo") or shutil.which("/usr/games/gnugo")


@pytest.mark.skipif(GNUGO is None, reason="gnugo is not installed")
def test_stones_go_where_gnu_go_puts_them() -> None:
    commands = [(size, count) for size in range(5, 20) for count in range(1, 11)]
    text = "".join(f"boardsize {size}\nclear_board\nfixed_handicap {count}\n" for size, count in commands)
    assert GNUGO is not None
    told = subprocess.run(
        [GNUGO, "--mode", "gtp"], input=text, capture_output=True, text=True, timeout=LONG, check=True
    )
    answers = told.stdout.strip().split("\n\n")[2::3]
    for (size, count), answer in zip(commands, answers, strict=True):
        if answer.startswith("?"):
            with pytest.raises(GtpError, match="invalid number of stones"):
                fixed_handicap(size, count)
        else:
            ours = [f"{GO_LETTERS[p % size]}{size - p // size}" for p in fixed_handicap(size, count)]
            assert sorted(ours) == sorted(answer[1:].split()), (size, count)


def test_how_many_there_are() -> None:
    assert [most_fixed(size) for size in (5, 6, 7, 8, 9, 18, 19)] == [0, 0, 4, 4, 9, 4, 9]
