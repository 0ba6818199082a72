"""Games as environments of gymnasium, many at once or one, and the opponent in them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen import games, importing
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.games.players import Player
from tengen.gym.program import EnvGames, EnvProgram, EnvStep
from tengen.importing import UserCodeError
from tengen.match import player_spec
from tengen.match.engines import engine
from tengen.roles import rules
from tengen.schema import quote

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.utils import seeding
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ModuleNotFoundError as missing:
    raise TengenError(f"{missing}: tengen.gym needs gymnasium; install it with: pip install gymnasium") from None

AnyOpponent = str | Path | Player | Callable[[Any, np.ndarray], Any]
"""`random`, `mcts:200`, the path of a network or a run, other players of roles, a `Player`, or a function of
(observations [N, ...], action masks Bool[N, A]) that gives Int32[N]."""
_AGAIN = {AutoresetMode.NEXT_STEP: "next", AutoresetMode.SAME_STEP: "same", AutoresetMode.DISABLED: "never"}
_LARGEST = float(np.finfo(np.float32).max)


def find_opponent(given: AnyOpponent, game: Game, player: int | None, shown: Callable[[Any, Any], Any]) -> Player:
    """The opponent of `player` (None: of both). `shown` makes observations of (planes, scalars) for functions."""
    if isinstance(given, Player):
        return given
    if isinstance(given, str | Path):
        return _named(str(given), game, player)
    if not callable(given):
        raise OptionError(f"opponent: expected a name, a path, a Player or a function, got {quote(given)}")
    return Player(getattr(given, "__name__", type(given).__name__), _FunctionRule(game, given, shown), on_host=True)


def _named(text: str, game: Game, player: int | None) -> Player:
    if engine.is_foreign(text):
        raise OptionError(f"opponent: {text}: programs play in `tengen match`, not in environments")
    if text.partition(":")[0] in ("random", "mcts"):
        return player_spec.parse(text).player(game)
    role = game.roles[0 if player is None else 1 - player]
    try:
        return rules.parse(text, game, role)
    except TengenError as error:
        raise OptionError(f"opponent: {error}; random and mcts:200 are possible too") from None


@dataclass(frozen=True, eq=False)
class _FunctionRule:
    """A user's function, asked about the games in which it is to move."""

    game: Game
    function: Callable[[Any, np.ndarray], Any]
    shown: Callable[[Any, Any], Any]

    def __call__(self, params: Any, key: Array, states: Any, which: Any) -> Any:
        del params, key
        places = np.flatnonzero(which)
        look = jax.device_get(_look(self.game, states))
        legal = np.asarray(look.legal)[places]
        with importing.told("opponent"):
            found = np.asarray(self.function(self.shown(*(leaf[places] for leaf in look.observation)), legal))
        where = importing.where(self.function)
        if found.shape != places.shape or not np.issubdtype(found.dtype, np.integer):
            got = f"{found.dtype}{list(found.shape)}"
            raise UserCodeError(f"opponent: expected whole numbers of the shape [{len(places)}], got {got} ({where})")
        good = (found >= 0) & (found < self.game.num_actions)
        good &= legal[np.arange(len(places)), np.where(good, found, 0)]
        if not good.all():
            raise UserCodeError(f"opponent: action {found[~good][0]} is not legal in its position ({where})")
        actions = np.zeros(len(which), np.int32)
        actions[places] = found
        return actions


@partial(jax.jit, static_argnums=0)
def _look(game: Game, states: Any) -> Any:
    return jax.vmap(game.look)(states)


class GameVectorEnv(gymnasium.vector.VectorEnv):
    """`num_envs` games of a learner against an opponent.

    Observations are `planes` (UInt8[H, W, C], 0 or 1) and `scalars` (Float32[S]) of the player to move: a dictionary,
    or one of them if the game has no other. The reward is the game's result for the learner at its end, and 0 before.
    `info["action_mask"]` (Bool[num_envs, A]) marks the legal actions; an illegal one loses the game.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012, as gymnasium has it

    def __init__(
        self,
        game: str | Game,
        num_envs: int = 1,
        opponent: AnyOpponent = "random",
        *,
        player: int | None = 0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        """`player` is the learner: 0 moves first, 1 second, None draws for every game. `options` are the game's."""
        if player not in (0, 1, None) or isinstance(player, bool):
            raise OptionError(f"player: expected 0, 1 or None, got {player!r}")
        if isinstance(num_envs, bool) or not isinstance(num_envs, int | np.integer) or num_envs < 1:
            raise OptionError(f"num_envs: expected a whole number of at least 1, got {num_envs!r}")
        if render_mode not in (None, "ansi"):
            raise OptionError(f"render_mode: expected ansi or None, got {render_mode!r}")
        self.game = games.make(game, **options) if isinstance(game, str) else game
        self.num_envs, self.render_mode = int(num_envs), render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = observation_space(self.game)
        self.single_action_space = spaces.Discrete(self.game.num_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.opponent = seated = find_opponent(opponent, self.game, player, self._shown)
        self._program = EnvProgram(self.game, seated.rule, player, seated.on_host)
        self._games: EnvGames | None = None
        self._legal = np.zeros((self.num_envs, self.game.num_actions), bool)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """New games; with `options={"reset_mask": Bool[num_envs]}` only in these places."""
        if isinstance(seed, Sequence):
            if len(seed) != self.num_envs:
                raise OptionError(f"seed: expected one number or {self.num_envs} of them, got {len(seed)}")
            seed = None if None in seed else int(np.random.SeedSequence(list(seed)).generate_state(1)[0])  # type: ignore[arg-type]
        if seed is not None:
            self._np_random, self._np_random_seed = seeding.np_random(seed)
        mask = (options or {}).get("reset_mask")
        if mask is None or self._games is None:
            self._games, found = self._program.start(self.num_envs, self.opponent.params, self._key())
        else:
            mask = np.asarray(mask)
            if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
                raise OptionError(f"reset_mask: expected bool[{self.num_envs}], got {mask.dtype}{list(mask.shape)}")
            self._games, found = self._program.restart(
                self._games, jnp.asarray(mask), self.opponent.params, self._key()
            )
        found = self._fetched(found)
        return self._shown(*found.observation), self._info(found)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """A move of the learner in every game, and the opponent's answers."""
        if self._games is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or not np.issubdtype(chosen.dtype, np.integer):
            got = f"{chosen.dtype}{list(chosen.shape)}"
            raise OptionError(f"actions: expected whole numbers of the shape [{self.num_envs}], got {got}")
        again = _AGAIN[self.autoreset_mode]
        if again == "never" and bool(self._games.done.any()):
            raise gymnasium.error.ResetNeeded("a game is over: call reset(options={'reset_mask': ...}) first")
        self._games, found = self._program.step(
            self._games, jnp.asarray(chosen, jnp.int32), self.opponent.params, self._key(), again
        )
        found = self._fetched(found)
        info = self._info(found)
        if found.final is not None and found.terminated.any():
            info |= {"final_obs": self._shown(*found.final), "_final_obs": found.terminated}
            final = {"action_mask": found.final_legal, "illegal": found.illegal}
            info |= {"final_info": _marked(final, found.terminated), "_final_info": found.terminated}
        truncated = np.zeros(self.num_envs, bool)
        return self._shown(*found.observation), found.reward.astype(np.float64), found.terminated, truncated, info

    def action_masks(self) -> np.ndarray:
        """Bool[num_envs, A]: the legal actions now, as sb3-contrib's maskable algorithms ask for them."""
        return self._legal.copy()

    def render(self) -> tuple[str, ...] | None:
        if self.render_mode is None or self._games is None:
            return None
        states = jax.device_get(self._games.states)
        each = (jax.tree.map(lambda leaf, n=n: leaf[n], states) for n in range(self.num_envs))
        return tuple(self.game.render(state) for state in each)

    def _key(self) -> jax.Array:
        return jax.random.key(int(self.np_random.integers(2**32)))

    def _fetched(self, found: EnvStep) -> Any:
        host = jax.device_get(found)
        self._legal = np.asarray(host.legal)
        return host

    def _info(self, found: Any) -> dict[str, Any]:
        assert self._games is not None
        facts = {"action_mask": self._legal.copy(), "illegal": found.illegal, "player": np.asarray(self._games.player)}
        return _marked(facts, np.ones(self.num_envs, bool))

    def _shown(self, planes: Any, scalars: Any) -> Any:
        """An observation as the spaces declare it."""
        found = {"planes": np.asarray(planes).astype(np.uint8), "scalars": np.asarray(scalars, np.float32)}
        if isinstance(self.single_observation_space, spaces.Dict):
            return found
        return found["planes"] if self.game.num_scalars == 0 else found["scalars"]


def observation_space(game: Game) -> Any:
    """The space of one observation: planes, scalars, or a dictionary of both."""
    planes = spaces.Box(0, 1, game.planes_shape, np.uint8)
    scalars = spaces.Box(-_LARGEST, _LARGEST, (game.num_scalars,), np.float32)
    if not np.prod(game.planes_shape):
        return scalars
    return planes if not game.num_scalars else spaces.Dict({"planes": planes, "scalars": scalars})


def _marked(facts: dict[str, Any], where: np.ndarray) -> dict[str, Any]:
    """As gymnasium has infos of several games: `_name` tells for which of them `name` means something."""
    return {**facts, **{f"_{name}": where.copy() for name in facts}}


class GameEnv(gymnasium.Env):
    """One game of a learner against an opponent; see `GameVectorEnv`, which plays many at once."""

    metadata = GameVectorEnv.metadata

    def __init__(
        self,
        game: str | Game,
        opponent: AnyOpponent = "random",
        *,
        player: int | None = 0,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        about: dict[str, Any] = {"player": player, "render_mode": render_mode, **options}
        self._vector = GameVectorEnv(game, 1, opponent, autoreset_mode=AutoresetMode.DISABLED, **about)
        self.game, self.render_mode = self._vector.game, render_mode
        self._vector.render_mode = "ansi"
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
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
        found = self._vector.render()
        return found[0] if found and self.render_mode else None


def _first(observation: Any) -> Any:
    return {name: leaf[0] for name, leaf in observation.items()} if isinstance(observation, dict) else observation[0]


def _facts(info: dict[str, Any]) -> dict[str, Any]:
    facts = {name: values[0] for name, values in info.items() if not name.startswith("_")}
    return {name: value if np.ndim(value) else value.item() for name, value in facts.items()}
