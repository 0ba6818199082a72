"""One game as an environment of gymnasium."""

from typing import Any

import numpy as np

from tengen.errors import OptionError
from tengen.games.core import Game
from tengen.gym.library import AutoresetMode, gymnasium
from tengen.gym.opponents import AnyOpponent
from tengen.gym.vector import GameVectorEnv


class GameEnv(gymnasium.Env):
    """One game of a learner against an opponent; see `GameVectorEnv`, which plays many at once."""

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012, as gymnasium has it

    def __init__(
        self,
        game: str | Game,
        opponent: AnyOpponent = "random",
        *,
        player: int | None = 0,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self._vector = GameVectorEnv(game, 1, opponent, player=player, autoreset_mode=AutoresetMode.DISABLED, **options)
        if render_mode not in (None, "ansi"):
            raise OptionError(f"render_mode: expected ansi or None, got {render_mode!r}")
        self.game, self.render_mode = self._vector.game, render_mode
        self._vector.render_mode = "ansi"
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new game."""
        super().reset(seed=seed)
        observation, info = self._vector.reset(seed=int(self.np_random.integers(2**31)))
        return _first(observation), _facts(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The learner's move, and the opponent's until it is the learner's turn again."""
        observation, reward, terminated, _, info = self._vector.step(np.asarray(action)[None])
        return _first(observation), float(reward[0]), bool(terminated[0]), False, _facts(info)

    def action_masks(self) -> np.ndarray:
        """Bool[A]: the legal actions now."""
        return self._vector.action_masks()[0]

    def render(self) -> str | None:  # type: ignore[override]
        """The position as text."""
        found = self._vector.render()
        return found[0] if found and self.render_mode else None


def _first(observation: Any) -> Any:
    return {name: leaf[0] for name, leaf in observation.items()} if isinstance(observation, dict) else observation[0]


def _facts(info: dict[str, Any]) -> dict[str, Any]:
    facts = {name: values[0] for name, values in info.items() if not name.startswith("_")}
    return {name: value if np.ndim(value) else value.item() for name, value in facts.items()}
