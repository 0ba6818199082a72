"""The analysis of one position, which is then shown as text, as JSON or as a picture."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np

from tengen.analysis.board_picture import player_name
from tengen.analysis.query import Query
from tengen.data.format.identity import plain_options
from tengen.engine.engine import Engine, NetworkView, SearchReport
from tengen.games.core import Game

FORMAT = 1
"""Of the JSON; raised when a reader of the old one would misunderstand the new one."""


class NamedMove(NamedTuple):
    player: int
    action: int
    name: str


@dataclass(frozen=True)
class Analysis:
    """One position, with the raw output of the network and the result of the search."""

    network: str
    path: str
    game: Game
    state: Any
    moves: tuple[NamedMove, ...]  # that led here
    over: bool
    result: float | None  # for player 0, where the game is over
    look: NetworkView | None  # None where the game is over
    search: SearchReport | None  # None where the game is over, or without a search
    remarks: tuple[str, ...]

    @property
    def player(self) -> int:
        return int(self.game.to_play(self.state))

    @property
    def mover(self) -> str:
        return player_name(self.game, self.player)

    def line(self, actions: Iterable[int]) -> list[NamedMove]:
        return follow(self.game, self.state, actions)

    def ownership(self) -> np.ndarray | None:
        """Float32[H, W] from the side of player 0, if the network has such a head."""
        if self.look is None or self.look.ownership is None:
            return None
        return self.look.ownership * (1 - 2 * self.player)


def analyze(engine: Engine, query: Query, visits: int | None, **limits: Any) -> Analysis:
    """Look at the last position of `query`, and search it: `limits` are those of `Engine.think`; none for 0 visits."""
    states = query.states()
    engine.reset(states[0], query.record.actions)
    over = bool(query.game.is_over(states[-1]))
    if not over and visits != 0:
        engine.think(1)  # compiles, which must not count as search time
    return Analysis(
        network=engine.found.name,
        path=str(engine.found.path),
        game=query.game,
        state=states[-1],
        moves=tuple(follow(query.game, states[0], query.record.actions)),
        over=over,
        result=float(query.game.returns(states[-1])[0]) if over else None,
        look=None if over else engine.look(),
        search=None if over or visits == 0 else engine.think(visits, **limits),
        remarks=query.remarks,
    )


def follow(game: Game, state: Any, actions: Iterable[int]) -> list[NamedMove]:
    """Who makes these moves, and what they are called; ends where one has no name (a line that goes on too far)."""
    step, found = _step(game), []
    for action in actions:
        try:
            found.append(NamedMove(int(game.to_play(state)), int(action), game.action_name(state, int(action))))
        except ValueError:
            break
        state = step(state, np.int32(action))
    return found


def as_dict(analysis: Analysis) -> dict[str, Any]:
    """Ready for JSON; docs/analyze.md says what is what."""
    game = analysis.game
    return {
        "format": FORMAT,
        "network": {"name": analysis.network, "path": analysis.path},
        "game": {"name": game.name, "version": game.version, "options": plain_options(game)},
        "remarks": list(analysis.remarks),
        "position": {
            "moves": [move.name for move in analysis.moves],
            "to_play": analysis.player,
            "player": analysis.mover,
            "board": game.render(analysis.state),
            "over": analysis.over,
            "result": analysis.result,
        },
        "network_says": None if analysis.look is None else _look(analysis, analysis.look),
        "search": None if analysis.search is None else search_dict(analysis.search, game, analysis.state),
    }


def search_dict(search: SearchReport, game: Game, state: Any) -> dict[str, Any]:
    """What a search found at `state`, ready for JSON."""
    found = []
    for each in search.candidates:
        line = [move.name for move in follow(game, state, each.line)]
        found.append(
            {
                "move": line[0],
                "action": each.action,
                "visits": each.visits,
                "value": _rounded(each.value),
                "prior": _rounded(each.prior),
                "line": line,
            }
        )
    return {
        "visits": search.visits,
        "value": _rounded(search.value),
        "seconds": round(search.seconds, 4),
        "evaluations": search.evaluations,
        "candidates": found,
    }


def _look(analysis: Analysis, look: NetworkView) -> dict[str, Any]:
    game, state = analysis.game, analysis.state
    legal = np.flatnonzero(look.policy > 0)
    order = legal[np.argsort(-look.policy[legal], kind="stable")]
    told: dict[str, Any] = {
        "win": _rounded(look.win),
        "draw": _rounded(look.draw),
        "loss": _rounded(look.loss),
        "value": _rounded(look.value),
        "policy": [
            {"move": game.action_name(state, int(a)), "action": int(a), "prior": _rounded(look.policy[a])}
            for a in order
        ],
    }
    ownership = analysis.ownership()
    if ownership is not None:
        told["ownership"] = [[_rounded(x) for x in row] for row in ownership]
    if look.score is not None:
        told["score"] = {"mean": _rounded(look.score), "deviation": _rounded(look.score_spread or 0.0)}
    if look.moves_left is not None:
        told["moves_left"] = _rounded(look.moves_left)
    if look.opponent_policy is not None:
        told["opponent_policy"] = [_rounded(x) for x in look.opponent_policy]
    if look.targets:
        told["targets"] = {name: np.round(value.astype(float), 6).tolist() for name, value in look.targets.items()}
    return told


def _rounded(number: Any) -> float:
    """Six digits: more than a network means."""
    return round(float(number), 6)


@lru_cache(maxsize=8)
def _step(game: Game) -> Any:
    return jax.jit(game.step)
