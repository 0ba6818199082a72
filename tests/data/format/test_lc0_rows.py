"""Rows from Lc0's records, and which positions are chosen."""

from pathlib import Path

import numpy as np
import pytest

from tengen import games
from tengen.config.settings.data import DiffFocusSettings
from tengen.data.format import lc0, rows, sanity
from tengen.data.format.chunk import CorruptChunk, ForeignChunk, UnreadableChunk
from tengen.data.format.lc0 import choose
from tengen.errors import OptionError
from tengen.games import chess_lc0
from tests.helpers.lc0_records import made

FORM = rows.RowFormat((8, 8, chess_lc0.PLANES), 1, chess_lc0.NUM_MOVES, ("opponent_policy",))


def test_planes_are_those_of_the_encoding() -> None:
    records = made(6)
    seen = chess_lc0.observation(
        chess_lc0.unpack(records["planes"]),
        records["castling"] != 0,
        records["black"] != 0,
        records["rule_50"].astype(int),
    )
    np.testing.assert_array_equal(lc0.planes(records), rows.pack_planes(np.asarray(seen.planes)))


def test_a_game_as_rows(tmp_path: Path) -> None:
    records = made(6)
    records["result_d"][2], records["result_q"][2] = 1, 0
    lc0.write(tmp_path / "game.gz", records)
    found = lc0.reader(FORM)(tmp_path / "game.gz")
    assert rows.check(FORM, found) == 6
    assert not list(sanity.problems(FORM, found))
    np.testing.assert_array_equal(found["policy"], np.maximum(records["probabilities"], 0).astype(np.float16))
    np.testing.assert_array_equal(found["opponent_policy"][:-1], found["policy"][1:])
    assert found["opponent_weight"].tolist() == [1, 1, 1, 1, 1, 0]
    assert found["outcome"][:3].tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert found["moves_left"].tolist() == [5, 4, 3, 2, 1, 0]
    assert found["to_play"].tolist() == [0, 1] * 3
    np.testing.assert_allclose(found["scalars"][:, 0], records["rule_50"] / 99, rtol=1e-6)
    np.testing.assert_array_equal(found["search_value"], records["root_q"])


def test_the_rate_and_the_seed() -> None:
    records, everything = made(3000), np.arange(3000)
    first, second = (choose(records, np.random.default_rng(0), 0.25) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert 600 < len(first) < 900
    np.testing.assert_array_equal(choose(records, np.random.default_rng(0)), everything)


def test_a_game_of_which_nothing_is_drawn(tmp_path: Path) -> None:
    lc0.write(tmp_path / "game.gz", made(6))
    found = lc0.reader(FORM, rate=1e-9)(tmp_path / "game.gz")
    assert rows.check(FORM, found) == 0


def test_the_diff_focus_prefers_what_the_search_has_changed() -> None:
    records = made(4000)
    records["best_q"], records["orig_q"], records["policy_kld"] = 0.5, 0.5, 0.35
    records["orig_q"][:2000] = -0.5
    records["orig_q"][3000:] = np.nan
    chosen = choose(records, np.random.default_rng(0), focus=DiffFocusSettings(slope=0.5, least=0.1))
    changed, same, unknown = (((chosen >= low) & (chosen < low + size)).sum() / size
                              for low, size in ((0, 2000), (2000, 1000), (3000, 1000)))  # fmt: skip
    assert changed == pytest.approx(0.1 + 0.5 * (6 + 0.35) / 9.5, abs=0.04)
    assert same == pytest.approx(0.1 + 0.5 * 0.35 / 9.5, abs=0.03)
    assert unknown == 1
    records["flags"][0] = lc0.HISTORY_ONLY
    assert 0 not in choose(records, np.random.default_rng(0))


def test_a_reply_that_is_not_learned_from_is_no_target(tmp_path: Path) -> None:
    records = made(6)
    records["flags"][3] = lc0.HISTORY_ONLY
    lc0.write(tmp_path / "game.gz", records)
    found = lc0.reader(FORM)(tmp_path / "game.gz")
    assert found["ply"].tolist() == [0, 1, 2, 4, 5]
    assert found["opponent_weight"].tolist() == [1, 1, 0, 1, 0]
    assert not found["opponent_policy"][2].any()


def test_bad_chunks_are_named(tmp_path: Path) -> None:
    records, path = made(3), tmp_path / "game.gz"
    read = lc0.reader(FORM)
    for field, value, error, message in (
        ("root_q", 2, CorruptChunk, "game.gz: root_q: expected from -1 to 1"),
        ("probabilities", 0.5, CorruptChunk, "game.gz: probabilities: expected"),
        ("input_format", 3, ForeignChunk, "game.gz: planes in Lc0's input format 3, expected 1 or 2"),
    ):
        wrong = records.copy()
        wrong[field] = value
        wrong["castling"], wrong["black"] = 0, 0
        path.write_bytes(wrong.tobytes())
        with pytest.raises(error, match=message):
            read(path)
    with pytest.raises((UnreadableChunk, CorruptChunk), match="nothing.gz"):
        read(tmp_path / "nothing.gz")


def test_only_chess_is_read_from_lc0() -> None:
    with pytest.raises(OptionError, match="chunks of Lc0 hold chess"):
        lc0.reader(rows.RowFormat.of(games.make("tic_tac_toe")))
