"""Small files as KataGo's self-play writes them, and games of Tengen's self-play that are written so."""

import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tengen import games
from tengen.data.format import katago, katago_writing
from tengen.data.format.katago_writing import GameCourses
from tengen.data.format.rows import Rows, blank, pack_planes
from tests.oracles import go as oracle
from tests.oracles.katago_targets import KnownGame, KnownTurn, turns

SIZE = 3
GAME = games.make("go", size=SIZE, komi=2.5, max_moves=14, observation="katago")
FORM = katago_writing.played_form(GAME, scored=True)
VISITS = (8, 2)


def made_arrays(rows: int, side: int = SIZE, columns: int = 80, seed: int = 0) -> dict[str, np.ndarray]:
    """The arrays of a good file with random numbers, written by hand."""
    draw = np.random.default_rng(seed)
    area = side * side
    targets = np.zeros((rows, columns), np.float32)
    win = draw.random(rows)
    targets[:, 0], targets[:, 1] = win, 1 - win
    targets[:, 16] = draw.random(rows)
    targets[:, 17] = 1 - targets[:, 16]
    targets[:, 20] = draw.integers(-9, 9, rows) + 0.5
    targets[:, 24:30] = draw.random((rows, 6))
    targets[:, 33:36] = draw.random((rows, 3))
    targets[:, 41:47] = draw.integers(0, 2**20, (rows, 6))
    targets[:, 51], targets[:, 63] = draw.integers(0, 50, rows), 3 if columns == 80 else 2
    packed = np.packbits(draw.integers(0, 2, (rows, 22, area), np.uint8), axis=2)
    packed[:, 0, 0] |= 128  # no board is empty
    return {
        "binaryInputNCHWPacked": packed,
        "globalInputNC": draw.random((rows, 19), np.float32),
        "policyTargetsNCMove": draw.integers(0, 200, (rows, 2, area + 1)).astype(np.int16),
        "globalTargetsNC": targets,
        "scoreDistrN": np.zeros((rows, 2 * area + 120), np.int8),
        "valueTargetsNCHW": draw.integers(-1, 2, (rows, 5, side, side)).astype(np.int8),
        "qValueTargetsNCMove": np.zeros((rows, 3, area + 1), np.int16),
    }


def on_boards(arrays: dict[str, np.ndarray], boards: list[tuple[int, int]]) -> dict[str, np.ndarray]:
    """The arrays with each row on a board of that height and width, in the top left corner; elsewhere all is 0."""
    side, found = arrays["valueTargetsNCHW"].shape[-1], {name: values.copy() for name, values in arrays.items()}
    planes = np.unpackbits(found["binaryInputNCHWPacked"], axis=2, count=side * side).reshape(-1, 22, side, side)
    points = found["policyTargetsNCMove"][:, :, :-1].reshape(-1, 2, side, side)
    for row, (height, width) in enumerate(boards):
        on_board = np.zeros((side, side), bool)
        on_board[:height, :width] = True
        planes[row, 0] = True
        for values in (planes, points, found["valueTargetsNCHW"]):
            values[row, :, ~on_board] = 0
    found["binaryInputNCHWPacked"] = np.packbits(planes.reshape(-1, 22, side * side), axis=2)
    found["policyTargetsNCMove"][:, :, :-1] = points.reshape(-1, 2, side * side)
    return found


def cropped(arrays: dict[str, np.ndarray], board: int, kept: list[int]) -> dict[str, np.ndarray]:
    """The arrays of these rows as KataGo writes them with a smaller `dataBoardLen`, point by point."""
    side, small = arrays["valueTargetsNCHW"].shape[-1], made_arrays(len(kept), board)
    old = np.unpackbits(arrays["binaryInputNCHWPacked"], axis=2)
    new = np.zeros((len(kept), 22, board * board), np.uint8)
    for place, row in enumerate(kept):
        for y, x in np.ndindex(board, board):
            new[place, :, y * board + x] = old[row, :, y * side + x]
            small["policyTargetsNCMove"][place, :, y * board + x] = arrays["policyTargetsNCMove"][row, :, y * side + x]
            small["valueTargetsNCHW"][place, :, y, x] = arrays["valueTargetsNCHW"][row, :, y, x]
        small["policyTargetsNCMove"][place, :, -1] = arrays["policyTargetsNCMove"][row, :, -1]
    small["binaryInputNCHWPacked"] = np.packbits(new, axis=2)
    return small | {name: arrays[name][kept] for name in ("globalInputNC", "globalTargetsNC")}


def write_arrays(path: Path, arrays: dict[str, np.ndarray], ending: str = "") -> Path:
    """A file as KataGo writes it; its shuffle's files have names that end in `.npy`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in arrays.items():
            with archive.open(name + ending, "w") as member:
                np.lib.format.write_array(member, values)
    return path


def played_games(count: int, seed: int = 1, scored: bool = True) -> list[KnownGame]:
    """Games of random moves, some of which end by passes and some by the limit of moves; `scored` by their searches."""
    draw, points, found = random.Random(seed), random.Random(-seed), []
    for number in range(count):
        rules: dict[str, Any] = {"size": SIZE, "komi": 2.5 - number / 2, "max_moves": GAME.max_moves}
        game = oracle.Go(**rules)
        while not game.over:
            legal = [action for action, allowed in enumerate(game.legal_actions()) if allowed]
            game.play(draw.choice([*legal, SIZE * SIZE] if game.moves > 5 else legal))
        actions = game.last_moves[::-1]
        values = [float(np.float16(draw.uniform(-1, 1))) for _ in actions]
        scores = [float(np.float32(points.uniform(-9, 9))) for _ in actions]
        found.append(KnownGame(rules, actions, values, number % 3, scores if scored else None))
    return found


def rows_of(known: list[KnownGame]) -> tuple[Rows, GameCourses, list[KnownTurn]]:
    """The rows that self-play would make of these games, and what is expected of each."""
    expected = [(number, turn, one) for number, game in enumerate(known) for turn, one in turns(game).items()]
    draw, count = np.random.default_rng(3), len(expected)
    rows = blank(FORM, count)
    for place, (number, turn, one) in enumerate(expected):
        rows["planes"][place] = pack_planes(one.planes.T.reshape(SIZE, SIZE, katago.PLANES))
        rows["scalars"][place] = one.scalars
        rows["game"][place], rows["ply"][place] = (5, number), turn
        rows["ownership"][place], rows["stones_in_8"][place], rows["stones_in_32"][place] = one.board[[0, 2, 3]]
        rows["score"][place], rows["search_value"][place] = one.columns[20], known[number].values[turn]
        rows["outcome"][place] = one.columns[0], 0, one.columns[1]
        rows["to_play"][place] = turn % 2
        if (scores := known[number].scores) is not None:
            rows[katago_writing.SCORE][place] = scores[turn]
    rows["weight"] = draw.choice([0.25, 1.0], count).astype(np.float32)
    for policy, weight in (("policy", "policy_weight"), ("opponent_policy", "opponent_weight")):
        rows[weight] = draw.choice([0.0, 1.0], count).astype(np.float32)
        shares = draw.dirichlet(np.ones(SIZE * SIZE + 1), count)
        rows[policy] = np.where(rows[weight][:, None] > 0, shares, 0).astype(np.float16)
    for name in ("value_weight", "search_weight", "final_weight"):
        rows[name][:] = 1
    longest = GAME.max_moves
    ends = [oracle.Go(**game.rules) for game in known]
    for end, game in zip(ends, known, strict=True):
        for action in game.actions:
            end.play(action)
    courses = GameCourses(
        number=np.array([(5, number) for number in range(len(known))], np.uint32),
        value=np.array([game.values + [0.0] * (longest - len(game.values)) for game in known], np.float16),
        score=None
        if known[0].scores is None
        else np.array([[*(game.scores or ()), *[0.0] * (longest - len(game.actions))] for game in known]),
        length=np.array([len(game.actions) for game in known]),
        opening=np.array([game.opening for game in known]),
        cut=np.array([game.actions[-2:] != [SIZE * SIZE] * 2 for game in known]),
        result=np.array([end.returns()[0] for end in ends], np.float32),
        komi=np.array([game.rules["komi"] for game in known], np.float32),
    )
    return rows, courses, [one for _, _, one in expected]


def check_turns(arrays: Rows, rows: Rows, expected: list[KnownTurn], side: int = SIZE) -> None:
    """All arrays of a file against what follows from the games; policies are those of the rows."""
    count, area = len(expected), side * side
    assert list(arrays) == list(katago.shapes(0, side))
    for name, (shape, dtype) in katago.shapes(count, side).items():
        assert (arrays[name].shape, arrays[name].dtype) == (shape, dtype), name
    planes = np.unpackbits(arrays["binaryInputNCHWPacked"], axis=2)[:, :, :area]
    targets = arrays["globalTargetsNC"]
    assert np.isfinite(targets).all()
    for place, one in enumerate(expected):
        np.testing.assert_array_equal(planes[place], one.planes)
        np.testing.assert_allclose(arrays["globalInputNC"][place], one.scalars, atol=1e-6)
        np.testing.assert_array_equal(arrays["scoreDistrN"][place], one.score_bins)
        np.testing.assert_array_equal(arrays["valueTargetsNCHW"][place], one.board)
        for column, value in one.columns.items():
            np.testing.assert_allclose(targets[place, column], value, atol=1e-5, err_msg=f"row {place}, {column}")
    np.testing.assert_array_equal(targets[:, 25], rows["weight"])
    for channel, (policy, weight, column) in enumerate(
        (("policy", "policy_weight", 26), ("opponent_policy", "opponent_weight", 28))
    ):
        np.testing.assert_array_equal(targets[:, column], rows[weight])
        written, known = arrays["policyTargetsNCMove"][:, channel].astype(float), rows[weight] > 0
        assert (written >= 0).all()
        assert (written[~known] == 1).all()
        shares = written[known] / written[known].sum(-1, keepdims=True)
        np.testing.assert_allclose(shares, rows[policy][known].astype(float), atol=5e-4)
    np.testing.assert_array_equal(targets[:, 60], np.where(rows["policy_weight"] > 0, *VISITS))
    assert (arrays["scoreDistrN"].sum(-1) == 100).all()
    assert not arrays["qValueTargetsNCMove"].any()
