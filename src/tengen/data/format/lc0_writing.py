"""Games of Tengen's self-play as Lc0's training records, with a chunk for each game.

Lc0 needs every position that was searched. Those that Tengen does not learn from are written with the mark
HISTORY_ONLY, and readers leave them out. Chances of a draw and moves left, which Tengen's search does not average, are
the network's for the position, also for its best and its played move, unless that move ends the game.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32, Int

from tengen import files
from tengen.data.format import lc0
from tengen.data.format.rows import RowFormat, game_numbers, unpack_planes
from tengen.games import chess_lc0
from tengen.games.core import Game

POLICY = "probabilities"
"""A field of rows: Float16[N, A], the policy of every search, also of cheap ones, with -1 for illegal moves."""
FACTS = (
    "network_value",  # of the position, before the search
    "network_draw",
    "network_moves_left",  # NaN if the network does not know it
    "visits",  # of the root
    "best",  # the most visited move
    "best_value",
    "best_ends",  # 1 if it ends the game
    "played_value",
    "played_ends",
    "policy_kld",  # of the search's policy from the network's
)
"""Fields of rows: Float32[N] of each search, for the player to move."""
PROVEN, TOO_LONG, ADJUDICATED = 8, 16, 32  # bits of `flags`


@dataclass(frozen=True)
class Lc0Game:
    """A finished game of chess as arrays, one entry for each of its N moves; values are those of the player to move."""

    planes: Bool[np.ndarray, "moves 8 8 110"]  # Tengen's observation
    scalars: Float32[np.ndarray, "moves 1"]
    probabilities: Float32[np.ndarray, "moves 1858"]  # shares of the visits; -1 for illegal moves
    played_idx: Int[np.ndarray, " moves"]
    best_idx: Int[np.ndarray, " moves"]
    visits: Int[np.ndarray, " moves"]
    root: Float32[np.ndarray, "moves 3"]  # value, chance of a draw, and moves left, after the search
    best: Float32[np.ndarray, "moves 3"]  # the same for the best move
    played: Float32[np.ndarray, "moves 3"]  # and for the one that was played
    orig: Float32[np.ndarray, "moves 3"]  # the network's, before the search; NaN if unknown
    result: int  # 1 if White has won, 0 for a draw, -1
    policy_kld: Float32[np.ndarray, " moves"]  # of the visits from the network's policy; NaN if unknown
    flags: Int[np.ndarray, " moves"]  # PROVEN, lc0.HISTORY_ONLY and so on


def to_records(game: Lc0Game) -> np.ndarray:
    """The game as Lc0's records (RECORD[N]), for `lc0.write`."""
    count = len(game.planes)
    records = np.zeros(count, lc0.RECORD)
    records["version"], records["input_format"] = 6, lc0.CLASSICAL
    records["probabilities"] = game.probabilities
    by_plane = np.moveaxis(game.planes, -1, 1)
    records["planes"] = chess_lc0.pack(by_plane[:, 1:105])
    records["castling"], records["black"] = by_plane[:, 105:109, 0, 0], by_plane[:, 109, 0, 0]
    records["rule_50"] = np.rint(game.scalars[:, 0] * chess_lc0.RULE_50_SCALE).clip(0, 100)
    for name in ("root", "best", "played", "orig"):
        q, draw, moves = getattr(game, name).T
        records[f"{name}_q"] = q = q.clip(-1, 1)
        records[f"{name}_d"] = np.minimum(draw.clip(0, 1), 1 - np.abs(q))  # wins and losses are no less than 0
        records[f"{name}_m"] = moves.clip(0)
    records["plies_left"] = np.arange(count, 0, -1)
    records["result_q"] = game.result * (1 - 2 * records["black"].astype(int))
    records["result_d"] = float(game.result == 0)
    for name in ("visits", "played_idx", "best_idx", "flags"):
        records[name] = getattr(game, name)
    # Lc0 adds the smallest number, so that 0 means unknown.
    known = np.maximum(game.policy_kld, 0) + np.finfo(np.float32).tiny
    records["policy_kld"] = np.where(np.isnan(game.policy_kld), 0, known)
    return records


def played_form(game: Game, heads: tuple[str, ...]) -> RowFormat:
    """The fields of rows of self-play that become records: those to learn from, and what is known of the searches."""
    learned = RowFormat.of(game, heads)
    more = (f"{POLICY}:action:float16", *(f"{name}:number:float32" for name in FACTS))
    return RowFormat(learned.planes_shape, learned.num_scalars, learned.num_actions, (*learned.extras, *more))


def records_of(
    rows: Mapping[str, np.ndarray], number: np.ndarray, action: np.ndarray, result: np.ndarray, cut: np.ndarray
) -> Iterator[np.ndarray]:
    """The records of each game, for rows (np) of `played_form` in any order, with all that were searched.

    For G games: their numbers UInt32[G, 2], moves [G, M], results for White, and whether the limit of moves ended them.
    """
    names, known = game_numbers(rows["game"]), game_numbers(number)
    order = np.lexsort((rows["ply"], names))
    names = names[order]
    for place in range(len(known)):
        which = order[np.searchsorted(names, known[place]) : np.searchsorted(names, known[place], "right")]
        if len(which):
            game = {name: values[which] for name, values in rows.items()}
            yield to_records(_game(game, action[place], int(result[place]), bool(cut[place])))


def _game(rows: Mapping[str, np.ndarray], action: np.ndarray, result: int, cut: bool) -> Lc0Game:
    policy = rows[POLICY].astype(np.float32)
    total = np.maximum(policy, 0).sum(-1, keepdims=True)
    moves_left = rows["network_moves_left"]
    root = np.stack([rows["search_value"], rows["network_draw"], np.nan_to_num(moves_left)], -1)

    def after(name: str) -> np.ndarray:
        """Value, draw and moves left of a move: if it ends the game, they are certain."""
        value, ends = rows[f"{name}_value"], rows[f"{name}_ends"] > 0
        draw = np.where(ends, value == 0, root[:, 1])
        return np.stack([value, draw, np.where(ends, 1, root[:, 2])], -1).astype(np.float32)

    proven = (rows["best_ends"] > 0) & (rows["best_value"] == 1)
    flags = np.where(proven, PROVEN, 0) | np.where(rows["policy_weight"] > 0, 0, lc0.HISTORY_ONLY)
    return Lc0Game(
        planes=unpack_planes(rows["planes"], (8, 8, chess_lc0.PLANES)),
        scalars=rows["scalars"],
        probabilities=np.where(policy >= 0, policy / np.maximum(total, 1e-6), np.float32(-1)),
        played_idx=action[rows["ply"].astype(int)],
        best_idx=rows["best"].astype(int),
        visits=rows["visits"].astype(int),
        root=root.astype(np.float32),
        best=after("best"),
        played=after("played"),
        orig=np.stack([rows["network_value"], rows["network_draw"], moves_left], -1),
        result=result,
        policy_kld=rows["policy_kld"],
        flags=flags | (TOO_LONG | ADJUDICATED if cut else 0),
    )


def write(folder: Path, name: str, games: list[np.ndarray]) -> None:
    """Write the games as `FOLDER/NAME-00000.gz` and so on; the order of the names is that of the games."""
    files.make_folder(folder)
    for number, records in enumerate(games):
        lc0.write(folder / f"{name}-{number:05d}.gz", records)
