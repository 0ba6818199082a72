"""Games of the pgx library, such as shogi. See docs/games/pgx.md."""

from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32

from tengen.errors import OptionError
from tengen.games.core import Game, Observation, RandomKey
from tengen.schema import setting

PREFIX = "pgx:"
UNSUITABLE = {
    "2048": "it has one player",
    "backgammon": "it rolls dice",
    "bridge_bidding": "it hides cards",
    "kuhn_poker": "it hides cards",
    "leduc_holdem": "it hides cards",
    "sparrow_mahjong": "it hides tiles",
}
LONGEST = {"chess": 512, "gardner_chess": 256, "animal_shogi": 256, "shogi": 512, "go_9x9": 162, "go_19x19": 722,
           "connect_four": 42, "tic_tac_toe": 9, "hex": 122, "othello": 120}  # fmt: skip
# Channels of the observation that hold one number for the whole board instead of a plane.
NUMBERS = {"chess": (113, 118), "gardner_chess": (113, 114), "animal_shogi": (193,)}


@dataclass(frozen=True)
class PgxOptions:
    max_moves: int | None = setting(
        None, "moves until a game is a draw (null: the limit of pgx, or else 1000)", low=1, high=10000
    )


class PgxState(NamedTuple):
    inner: Any  # the pgx state, its observation left out
    first: Int32[Array, "*batch"]  # which of pgx's players moved first; that one is our player 0


class PgxGame(Game[PgxState]):
    """A two-player game of pgx without chance or hidden information."""

    Options: ClassVar[type] = PgxOptions

    def __init__(self, name: str, options: PgxOptions) -> None:
        self.name = name
        self.options = options
        self.env: Any = check_name(name).make(name.removeprefix(PREFIX))
        if self.env.id == "chess":
            self.players = ("white", "black")
        self.version = int("".join(c for c in self.env.version if c.isdigit()) or 0)
        self.num_actions = int(self.env.num_actions)
        self.max_moves = options.max_moves or LONGEST.get(self.env.id, 1000)
        height, width, channels = self.env.observation_shape
        self._numbers = NUMBERS.get(self.env.id, ())
        self._pictures = tuple(c for c in range(channels) if c not in self._numbers)
        self.planes_shape = (height, width, 1 + len(self._pictures))
        self.num_scalars = len(self._numbers)

    def init(self, key: RandomKey) -> PgxState:
        inner = self.env.init(key)
        return PgxState(_without_observation(inner), inner.current_player.astype(jnp.int32))

    def _play(self, state: PgxState, action: Int32[Array, ""]) -> PgxState:
        return PgxState(_without_observation(self.env.step(state.inner, action)), state.first)

    def legal_actions(self, state: PgxState) -> Bool[Array, " actions"]:
        return state.inner.legal_action_mask & ~self.is_over(state)

    def observe(self, state: PgxState) -> Observation:
        seen = self.env.observe(state.inner)
        pictures = seen[:, :, np.array(self._pictures)] != 0
        on_board = jnp.ones((*self.planes_shape[:2], 1), bool)
        numbers = seen[0, 0, np.array(self._numbers, np.int32)].astype(jnp.float32)
        return Observation(jnp.concatenate([on_board, pictures], -1), numbers)

    def to_play(self, state: PgxState) -> Int32[Array, ""]:
        return (state.inner.current_player.astype(jnp.int32) + state.first) % 2

    def is_over(self, state: PgxState) -> Bool[Array, ""]:
        inner = state.inner
        return inner.terminated | inner.truncated | (inner._step_count >= self.max_moves)

    def returns(self, state: PgxState) -> Float32[Array, "2"]:
        rewards = state.inner.rewards.astype(jnp.float32)
        rewards = jnp.where(state.first == 0, rewards, rewards[::-1])
        return jnp.where(self.is_over(state), rewards, 0)

    def render(self, state: PgxState) -> str:
        notes = {"to play": str(int(self.to_play(state))), "moves": str(int(state.inner._step_count))}
        legal = np.flatnonzero(np.asarray(self._legal_actions(state)))
        lines = [self.name, *(f"{key}: {value}" for key, value in notes.items())]
        return "\n".join([*lines, f"legal actions: {' '.join(map(str, legal))}"])

    def _action_name(self, state: PgxState, action: int) -> str:
        return str(action)

    def parse_action(self, state: PgxState, text: str) -> int:
        # pgx games have thousands of actions, so only the legal ones are named.
        names = {str(action): int(action) for action in np.flatnonzero(np.asarray(self._legal_actions(state)))}
        wanted = text.strip()
        if wanted not in names:
            hint = f"legal are {', '.join(list(names)[:8])}{' ...' * (len(names) > 8)}" if names else "the game is over"
            raise ValueError(f"{self.name}: {wanted!r} is not a legal move here; {hint}")
        return names[wanted]


def check_name(name: str) -> ModuleType:
    """Returns the pgx library. Raises OptionError if it has no game with that name that Tengen can play."""
    try:
        import pgx
    except ModuleNotFoundError:
        raise OptionError(f"{name} needs the pgx library: pip install 'tengen-zero[pgx]'") from None
    inner = name.removeprefix(PREFIX)
    reason = "it has one player" if inner.startswith("minatar") else UNSUITABLE.get(inner)
    known = pgx.available_envs()
    if reason is None and inner in known:
        return pgx
    suitable = ", ".join(n for n in known if n not in UNSUITABLE and not n.startswith("minatar"))
    problem = f"Tengen cannot play it: {reason}" if reason else "pgx has no game with that name"
    raise OptionError(f"{name}: {problem}; choose from {suitable}")


def _without_observation(inner: Any) -> Any:
    """The state with an empty observation: `env.observe` computes it again."""
    return inner.replace(observation=jnp.zeros(0, inner.observation.dtype))
