"""Files of KataGo as rows: every field by a slow reading of its arrays, and files that cannot be used."""

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen import games
from tengen.data.format import chunk, katago, showing
from tengen.data.format.archive import Archive
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.files import packed
from tests.helpers.katago_files import cropped, made_arrays, on_boards, write_arrays

HEADS = ("opponent_policy", "ownership", "score", "moves_left")
GAME = games.make("go", size=3, observation="katago", komi=0.5, ko="simple")
Arrays = dict[str, Any]


@pytest.mark.parametrize(("columns", "ending", "side"), [(80, "", 3), (64, "", 5), (80, ".npy", 3)])
def test_every_field(tmp_path: Path, columns: int, ending: str, side: int) -> None:
    arrays = made_arrays(7, side, columns)
    arrays["globalTargetsNC"][2, [26, 28, 0, 1, 2]] = 0, 0, 0.25, 0.25, 0.5
    if columns == 64:
        del arrays["qValueTargetsNCMove"]
    path = write_arrays(tmp_path / "net" / "tdata" / "A.npz", arrays, ending)
    game = games.make("go", size=side, observation="katago")
    rows, meta = chunk.read_chunk(path, RowFormat.of(game, HEADS), GameIdentity.of(game))
    assert (meta.rows, meta.games, meta.network) == (7, 7, "net")
    assert chunk.read_meta(path, count=True).games == 7
    bits = np.unpackbits(arrays["binaryInputNCHWPacked"], axis=2)
    for place in range(7):
        row, columns_ = {name: values[place] for name, values in rows.items()}, arrays["globalTargetsNC"][place]
        planes = np.unpackbits(row["planes"])[: side * side * 22].reshape(side, side, 22)
        for point in np.ndindex(side, side):
            assert planes[point].tolist() == bits[place, :, point[0] * side + point[1]].tolist()
        assert row["scalars"].tolist() == arrays["globalInputNC"][place].tolist()
        for channel, (name, weight, column) in enumerate(
            (("policy", "policy_weight", 26), ("opponent_policy", "opponent_weight", 28))
        ):
            target = arrays["policyTargetsNCMove"][place, channel].astype(float)
            expected = target / target.sum() if columns_[column] else 0 * target
            np.testing.assert_allclose(row[name], expected, atol=1e-3)
            assert row[weight] == columns_[column]
        np.testing.assert_allclose(row["outcome"], columns_[[0, 2, 1]], atol=1e-6)
        np.testing.assert_allclose(row["search_value"], columns_[16] - columns_[17], atol=1e-6)
        assert (row["weight"], row["final_weight"], row["score"]) == (columns_[25], columns_[27], columns_[20])
        assert (row["value_weight"], row["search_weight"]) == (1 - columns_[35], 1 - columns_[24])
        assert row["ownership"].tolist() == arrays["valueTargetsNCHW"][place, 0].tolist()
        assert (row["ply"], row["moves_left"]) == (columns_[51], -128)


@pytest.mark.parametrize("side", [7, 19])
def test_small_boards_in_a_file_for_larger_ones(tmp_path: Path, side: int) -> None:
    boards = [(3, 3), (side, side), (2, 3), (3, 4), (3, 3), (4, 2)]
    arrays = on_boards(made_arrays(6, side), boards)
    path, small = write_arrays(tmp_path / "A.npz", arrays), cropped(arrays, 3, [0, 2, 4])
    form, game = RowFormat.of(GAME, HEADS), GameIdentity.of(GAME)
    rows, meta = chunk.read_chunk(path, form, game)
    expected, _ = chunk.read_chunk(write_arrays(tmp_path / "B.npz", small), form, game)
    for name, values in expected.items():
        np.testing.assert_array_equal(rows[name], values, err_msg=name)
    assert (meta.rows, meta.left_out, meta.games) == (3, 3, 3)
    words = f"{path}: 3 of 6 rows are of boards larger than 3x3, and left out"
    assert meta.left_out_words(path) == words
    known = chunk.read_meta(path, form, game)
    assert (known.rows, known.left_out) == (3, 3)
    assert chunk.read_meta(path).rows == 6


def test_no_board_fits(tmp_path: Path) -> None:
    path = write_arrays(tmp_path / "A.npz", on_boards(made_arrays(2, 5), [(5, 5), (4, 4)]))
    form, game = RowFormat.of(GAME), GameIdentity.of(GAME)
    for read in (lambda: chunk.read_chunk(path, form, game), lambda: chunk.read_meta(path, form, game)):
        with pytest.raises(chunk.ForeignChunk, match=r"A\.npz: 2 of 2 rows are of boards larger than 3x3"):
            read()


def test_policies_outside_of_a_small_board(tmp_path: Path) -> None:
    arrays = on_boards(made_arrays(4, 5), [(5, 5), (3, 3), (3, 3), (3, 3)])
    arrays["policyTargetsNCMove"][2, 0] = 0
    arrays["policyTargetsNCMove"][2, 0, 4] = 9  # the last point of the first line
    path = write_arrays(tmp_path / "A.npz", arrays)
    with pytest.raises(chunk.CorruptChunk, match="policyTargetsNCMove: row 2: expected weights of at least 0, not all"):
        chunk.read_chunk(path, RowFormat.of(GAME), GameIdentity.of(GAME))


def test_a_row_without_a_board_in_a_file_for_larger_ones(tmp_path: Path) -> None:
    arrays = on_boards(made_arrays(4, 5), [(3, 3)] * 4)
    arrays["binaryInputNCHWPacked"][1, 0] = 0
    path = write_arrays(tmp_path / "A.npz", arrays)
    for read in (chunk.read_chunk, chunk.read_meta):
        with pytest.raises(chunk.CorruptChunk, match="row 1: expected a board in plane 0, which is empty"):
            read(path, RowFormat.of(GAME), GameIdentity.of(GAME))


def test_policies_are_rounded_to_half_precision(tmp_path: Path) -> None:
    arrays = made_arrays(3)
    arrays["globalTargetsNC"][:, [26, 28]] = 1
    arrays["policyTargetsNCMove"][:] = 0
    arrays["policyTargetsNCMove"][0, 0] = [32767] * 9 + [1]  # 1 / 294,904 is below the normal numbers
    arrays["policyTargetsNCMove"][0, 1, 4] = 7
    arrays["policyTargetsNCMove"][1:] = np.arange(40).reshape(2, 2, 10) + 1
    rows, _ = chunk.read_chunk(write_arrays(tmp_path / "A.npz", arrays))
    targets = arrays["policyTargetsNCMove"].astype(float)
    expected = (targets / targets.sum(-1, keepdims=True)).astype(np.float16)
    for channel, name in enumerate(("policy", "opponent_policy")):
        np.testing.assert_array_equal(rows[name], expected[:, channel])


def test_a_file_is_shown(tmp_path: Path) -> None:
    arrays = made_arrays(2)
    arrays["globalTargetsNC"][0, 27] = 0
    path = write_arrays(tmp_path / "net" / "tdata" / "A.npz", arrays)
    text = "\n".join(showing.show(path, 1))
    assert "go (in KataGo's format, by the rules in the scalars)" in text
    assert "score:   unknown" in text
    assert "moves left: unknown" in text


def _nan(arrays: Arrays) -> None:
    arrays["globalInputNC"][3, 5] = np.nan


def _huge(arrays: Arrays) -> None:
    arrays["globalTargetsNC"][2, 41] = -1e38


def _infinite(arrays: Arrays) -> None:
    arrays["globalTargetsNC"][1, 20] = np.inf


def _version(arrays: Arrays) -> None:
    arrays["globalTargetsNC"][2, 63] = 4


def _columns(arrays: Arrays) -> None:
    arrays["globalTargetsNC"] = np.zeros((4, 96), np.float32)


def _missing(arrays: Arrays) -> None:
    del arrays["scoreDistrN"]


def _no_planes(arrays: Arrays) -> None:
    del arrays["binaryInputNCHWPacked"]


def _extra(arrays: Arrays) -> None:
    arrays["moreTargets"] = np.zeros(4, np.float32)


def _shape(arrays: Arrays) -> None:
    arrays["policyTargetsNCMove"] = arrays["policyTargetsNCMove"][:, :, :-1]


def _rows(arrays: Arrays) -> None:
    arrays["globalInputNC"] = arrays["globalInputNC"][:-1]


def _type(arrays: Arrays) -> None:
    arrays["globalInputNC"] = arrays["globalInputNC"].astype(np.float64)


def _flat(arrays: Arrays) -> None:
    arrays["valueTargetsNCHW"] = np.zeros(4, np.int8)


def _policy(arrays: Arrays) -> None:
    arrays["policyTargetsNCMove"][1, 0] = 0


def _board(arrays: Arrays) -> None:
    arrays["binaryInputNCHWPacked"][2, 0] = 0


def _outcome(arrays: Arrays) -> None:
    arrays["globalTargetsNC"][3, 0] += 0.5


def _weight(arrays: Arrays) -> None:
    arrays["globalTargetsNC"][2, 35] = 2


def _negative(arrays: Arrays) -> None:
    arrays["globalTargetsNC"][1, 26] = -3


def _ownership(arrays: Arrays) -> None:
    arrays["valueTargetsNCHW"][0, 0, 1, 1] = 7


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (_nan, chunk.CorruptChunk, "globalInputNC: row 3, column 5: nan is no possible number"),
        (_infinite, chunk.CorruptChunk, "globalTargetsNC: row 1, column 20: inf is no possible"),
        (_huge, chunk.CorruptChunk, r"globalTargetsNC: row 2, column 41: -1e\+38 is no possible number"),
        (_version, chunk.ForeignChunk, "globalTargetsNC: row 2: expected format 2 or 3, got 4"),
        (_columns, chunk.ForeignChunk, "globalTargetsNC: expected 64 or 80 columns, got 96"),
        (_missing, chunk.ForeignChunk, "scoreDistrN: this array is missing"),
        (_no_planes, chunk.ForeignChunk, "binaryInputNCHWPacked: this array is missing"),
        (_extra, chunk.ForeignChunk, "moreTargets: an array too many"),
        (_shape, chunk.CorruptChunk, r"policyTargetsNCMove: expected int16 \[4, 2, 10\], got int16 \[4, 2, 9\]"),
        (_rows, chunk.CorruptChunk, r"globalInputNC: expected float32 \[4, 19\], got float32 \[3, 19\]"),
        (_type, chunk.CorruptChunk, "globalInputNC: expected float32"),
        (_flat, chunk.ForeignChunk, "valueTargetsNCHW: expected boards of 2x2 to 19x19, got 0x0"),
        (_policy, chunk.CorruptChunk, "policyTargetsNCMove: row 1: expected weights of at least 0, not all 0"),
        (_board, chunk.CorruptChunk, "binaryInputNCHWPacked: row 2: expected a board in plane 0, which is empty"),
        (_outcome, chunk.CorruptChunk, "globalTargetsNC: row 3: expected chances of win, loss and no result"),
        (_ownership, chunk.CorruptChunk, "valueTargetsNCHW: row 0: expected ownership of -1, 0 or 1"),
        (_weight, chunk.CorruptChunk, "globalTargetsNC: row 2, column 35: expected a weight from 0 to 1, got 2"),
        (
            _negative,
            chunk.CorruptChunk,
            "globalTargetsNC: row 1, column 26: expected a weight from 0 to .*, got -3",
        ),
    ],
)
@pytest.mark.parametrize("block", [100, 2])
def test_bad_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Arrays], None],
    error: type,
    message: str,
    block: int,
) -> None:
    """In a block of rows, or in two."""
    monkeypatch.setattr(katago, "_POINTS", 9 * block)
    arrays = made_arrays(4)
    spoil(arrays)
    path = write_arrays(tmp_path / "A.npz", arrays)
    with pytest.raises(error, match=rf"A\.npz: .*{message}"):
        chunk.read_chunk(path)


@pytest.mark.parametrize("fast", [False, True])
def test_rows_in_several_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: bool) -> None:
    """They are the same as in one. So they are without zlib-ng."""
    for side, block in ((3, 2), (7, 4), (19, 1)):
        monkeypatch.setattr(katago, "_POINTS", side * side * block)
        if not fast:
            monkeypatch.setattr(packed, "_Reader", lambda data: gzip.GzipFile(fileobj=io.BytesIO(data)))
        if side == 3:
            test_every_field(tmp_path / "3", 80, "", side)
            test_files_cut_or_changed(tmp_path / "3")
        else:
            test_small_boards_in_a_file_for_larger_ones(tmp_path / str(side), side)
            test_no_board_fits(tmp_path / str(side))


def test_files_cut_or_changed(tmp_path: Path) -> None:
    path = write_arrays(tmp_path / "A.npz", made_arrays(4))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(chunk.CorruptChunk, match="cut short"):
        chunk.read_chunk(path)
    place = whole.index(b"globalTargetsNC") + 120
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
    with pytest.raises(
        chunk.CorruptChunk, match="globalTargetsNC: (its checksum is wrong|cannot be unpacked|row .* is no possible)"
    ):
        chunk.read_chunk(path)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "go",
            {"size": 3},
            'observation: expected "tengen", got "katago"; rows of KataGo need game.observation=katago',
        ),
        (
            "go",
            {"size": 5, "observation": "katago"},
            "size: expected 5, got 3; rows of KataGo need .* as large as theirs",
        ),
        ("tic_tac_toe", {}, "expected the game tic_tac_toe, got go"),
    ],
)
def test_files_of_another_game(tmp_path: Path, name: str, options: dict[str, Any], message: str) -> None:
    path, game = write_arrays(tmp_path / "A.npz", made_arrays(4)), games.make(name, **options)
    for read in (chunk.read_chunk, chunk.read_meta):
        with pytest.raises(chunk.ForeignChunk, match=message):
            read(path, RowFormat.of(game), GameIdentity.of(game))
        with pytest.raises(chunk.ForeignChunk, match="data.max_chunk_rows allows 3"):
            read(path, limit=3)


def test_nothing_is_unpacked_of_a_file_that_is_not_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_arrays(tmp_path / "A.npz", on_boards(made_arrays(4, 5), [(3, 3)] * 2 + [(5, 5)] * 2))
    monkeypatch.setattr(Archive, "read", lambda *_: pytest.fail("an array was unpacked"))
    for read in (chunk.read_chunk, chunk.read_meta):
        with pytest.raises(chunk.ForeignChunk, match="has 4 rows, and data.max_chunk_rows allows 3"):
            read(path, RowFormat.of(GAME), GameIdentity.of(GAME), 3)
        own = games.make("go", size=3)
        with pytest.raises(chunk.ForeignChunk, match="rows of another game: .* need game.observation=katago"):
            read(path, RowFormat.of(own), GameIdentity.of(own))


def test_rules_and_komi_may_differ(tmp_path: Path) -> None:
    path = write_arrays(tmp_path / "A.npz", made_arrays(4))
    rows, _ = chunk.read_chunk(path, RowFormat.of(GAME), GameIdentity.of(GAME))
    assert len(rows["ply"]) == 4


def test_rows_without_weights_of_targets_are_given_them(tmp_path: Path) -> None:
    path = write_arrays(tmp_path / "A.npz", made_arrays(4))
    rows, meta = chunk.read_chunk(path)
    old = RowFormat(meta.form.planes_shape, meta.form.num_scalars, meta.form.num_actions)
    plain = {name: rows[name] for name in old.fields}
    chunk.write_chunk(tmp_path / "old.npz", old, plain, GameIdentity.of(GAME), network="net")
    again, _ = chunk.read_chunk(tmp_path / "old.npz", RowFormat.of(GAME), GameIdentity.of(GAME))
    assert again["value_weight"].tolist() == again["final_weight"].tolist() == [1, 1, 1, 1]
