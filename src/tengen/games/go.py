"""Go on square boards, area scoring (Tromp-Taylor), with three ko rules. See docs/games/go.md."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int8, Int16, Int32, Integer, UInt, UInt32

from tengen.games import go_chains as rules
from tengen.games import go_gpu, go_katago, go_ladders
from tengen.games.core import Game, Moves, Observation, PositionInfo, RandomKey, Symmetry, Which, square_symmetries
from tengen.games.go_chains import EMPTY
from tengen.games.targets import OWNERSHIP, SCORE
from tengen.games.text import GO_LETTERS, parse_grid, player_number, render_grid
from tengen.schema import setting

PLANES = (*go_katago.PLANES[:7], *go_katago.PLANES[9:14])
SCALARS = tuple(go_katago.SCALARS[number] for number in go_katago.FROM_TENGEN)
PLAYERS = ("black", "white")
NO_POINT = -1
REMEMBERED = 8  # positions that every node stores: enough for a triple ko, which repeats after six moves
NEVER = np.uint32(0xFFFFFFFF)  # an unused slot of a list of positions


@dataclass(frozen=True)
class GoOptions:
    size: int = setting(9, "points along one side of the board", low=2, high=19)
    komi: float = setting(7.0, "points that White gets", low=-400, high=400, multiple_of=0.5)
    ko: Literal["simple", "positional", "situational"] = setting("positional", "which repetitions are forbidden")
    suicide: bool = setting(False, "whether a move may capture several stones of its own colour")
    max_moves: int | None = setting(
        None, "moves until the board is scored as it stands (null: 2 * size * size, at least 50)", low=1, high=10000
    )
    observation: Literal["tengen", "katago"] = setting(
        "tengen",
        "what a network sees: 12 planes, or all 22 of KataGo, with ladders and pass-alive areas",
        before="tengen",
    )


class GoState(NamedTuple):
    """A position; points are numbered row by row from the top left, Black is 0."""

    chains: UInt[Array, "*batch points"]  # see go_chains
    turn: Int8[Array, "*batch"]  # who moves
    moves: Int16[Array, "*batch"]  # moves played
    last: Int16[Array, "*batch 5"]  # the newest moves first; the number of points is a pass, -1 no move
    ko: Int16[Array, "*batch"]  # the point that simple ko bans now, or -1
    komi: Int16[Array, "*batch"]  # in half points
    hash: UInt32[Array, "*batch 2"]  # the sum of the random numbers of all stones
    recent: UInt32[Array, "*batch recent 2"]  # the newest positions, this one first; empty under simple ko
    history: UInt32[Array, "*batch history 2"]  # all positions; empty in tree nodes and under simple ko
    ladders: UInt32[Array, "*batch 4 words"] | None = None  # see go_katago; only with its observation


class Go(Game[GoState]):
    """Go on a square board, area scoring."""

    name = "go"
    version = 1
    players = PLAYERS
    drawn_as = "points"
    Options: ClassVar[type] = GoOptions
    halves_draws: ClassVar[bool] = True  # as KataGo's networks do, which know wins and losses only
    extra_targets = (OWNERSHIP, SCORE)

    def __init__(self, options: GoOptions) -> None:
        self.options = options
        self.size = options.size
        self.points = self.size**2
        self.superko = options.ko != "simple"
        self.num_actions = self.points + 1
        self.max_moves = options.max_moves or max(2 * self.points, 50)
        self.katago = self.weighs_targets = options.observation == "katago"
        planes, scalars = (go_katago.PLANES, go_katago.SCALARS) if self.katago else (PLANES, SCALARS)
        self.planes_shape = (self.size, self.size, len(planes))
        self.num_scalars = len(scalars)
        self._ladder_limits = go_ladders.limits(self.size)
        self._dtype = rules.chain_dtype(self.size)
        numbers = self._keys = np.random.default_rng(19).integers(0, 2**32, (2, 2, self.points + 1), np.uint32)
        self._stone_keys = numbers[:, :, : self.points]  # [word, colour, point]
        self._turn_keys = numbers[:, :, self.points]  # [word, colour]

    def for_network(self, options: Mapping[str, Any]) -> "Go":
        """States with ladders serve networks of both observations."""
        return self._without_ladders if self.katago and options.get("observation", "tengen") == "tengen" else self

    @cached_property
    def _without_ladders(self) -> "Go":
        return Go(replace(self.options, observation="tengen"))

    def states_for(self, other: Game[GoState], states: GoState) -> GoState:
        return states if other is self else states._replace(ladders=None)

    @cached_property
    def exact(self) -> "Go":
        """The game with every ladder read to its end."""
        if not self.katago:
            return self
        other = copy.copy(self)
        other._ladder_limits = go_ladders.full_limits(self.size)
        return other

    # The rules

    def init(self, key: RandomKey) -> GoState:
        nothing = go_katago.no_ladders(self.points) if self.katago else None
        return self._begin(jnp.zeros(self.points, self._dtype), 0, NO_POINT, nothing)

    def init_varied(self, key: RandomKey, komi_spread: float) -> GoState:
        if komi_spread == 0:
            return self.init(key)
        drawn = self.options.komi + komi_spread * jax.random.normal(key)
        komi = jnp.clip(jnp.round(2 * drawn), -800, 800)  # the limits of the option
        return self.init(key)._replace(komi=komi.astype(jnp.int16))

    def position(self, chains: np.ndarray | Array, turn: int, ko: int | Array = NO_POINT) -> GoState:
        """A game that starts from these chains, which must all have liberties; simple ko bans the point `ko`."""
        chains, point = jnp.asarray(chains, self._dtype), jnp.asarray(ko, jnp.int16)
        return self._begin(chains, turn, point, self._ladders(None, chains, point, jnp.int32(turn)))

    def _begin(self, chains: Array, turn: int, ko: int | Array, ladders: Any) -> GoState:
        stones = jnp.stack([rules.colour_is(chains, 0), rules.colour_is(chains, 1)])
        total = jnp.where(stones, jnp.asarray(self._stone_keys), 0).sum((1, 2), dtype=jnp.uint32)
        kept, all_ = (REMEMBERED, self.max_moves) if self.superko else (0, 0)
        state = GoState(
            chains=chains,
            turn=jnp.int8(turn),
            moves=jnp.int16(0),
            last=jnp.full(5, NO_POINT, jnp.int16),
            ko=jnp.int16(ko),
            komi=jnp.int16(round(2 * self.options.komi)),
            hash=total,
            recent=jnp.full((kept, 2), NEVER, jnp.uint32),
            history=jnp.full((all_, 2), NEVER, jnp.uint32),
            ladders=ladders,
        )
        return self._remember(state)

    def _ladders(self, before: Any, chains: Array, ko: Array, turn: Array) -> Any:
        """What a state stores about ladders, if a network sees them; `before` is that of one move ago, if any."""
        return go_katago.ladders(before, chains, ko, turn, self.size, self._ladder_limits) if self.katago else None

    def _remember(self, state: GoState) -> GoState:
        """The state with its own position added to superko's lists of past positions."""
        if not self.superko:
            return state
        now = self._situation(state.hash, state.turn)
        recent = jnp.concatenate([now[None], state.recent[:-1]])
        return state._replace(recent=recent, history=self._history(state))

    def _history(self, state: GoState) -> UInt32[Array, "moves 2"]:
        """The list of all positions including the current one; it does not change while the game makes no move."""
        here = jnp.arange(state.history.shape[0]) == state.moves
        return jnp.where(here[:, None], self._situation(state.hash, state.turn), state.history)

    def _situation(self, position: UInt32[Array, "*points 2"], next_turn: Array) -> UInt32[Array, "*points 2"]:
        """The hash that must not repeat when `next_turn` is to move in `position`."""
        if self.options.ko == "positional":
            return position
        black, white = jnp.asarray(self._turn_keys).T
        return position + jnp.where(next_turn == 0, black, white)

    def _play(self, state: GoState, action: Int32[Array, ""]) -> GoState:
        me = self.to_play(state)
        move = rules.move(state.chains, action, me, self.size, self.options.suicide)
        keys = jnp.asarray(self._stone_keys)
        mine, theirs = jnp.where(me == 0, keys, keys[:, ::-1]).swapaxes(0, 1)
        change = jnp.where(jnp.arange(self.points) == action, mine, 0) - jnp.where(move.captured, theirs, 0)
        if self.options.suicide:
            change -= jnp.where(move.died, mine, 0)
        moved = state._replace(
            chains=move.chains,
            turn=(1 - state.turn).astype(jnp.int8),
            moves=state.moves + jnp.int16(1),
            last=jnp.concatenate([action[None].astype(jnp.int16), state.last[:-1]]),
            ko=move.ko.astype(jnp.int16),
            hash=state.hash + change.sum(1, dtype=jnp.uint32),
            ladders=self._ladders(state.ladders, move.chains, move.ko, 1 - me),
        )
        return self._remember(moved)

    def _marks(self, state: GoState) -> tuple[list[rules.PointMask], rules.PointMask]:
        """The planes of the observation from the player's stones to the points that only ko bans; the legal points."""
        me = self.to_play(state)
        seen = rules.survey(state.chains, me, self.size, self.options.suicide)
        banned = jnp.arange(self.points) == state.ko
        if self.superko:
            keys = jnp.asarray(self._stone_keys)
            after = rules.hashes_after(state.chains, seen, me, state.hash, keys, self.size)
            situation = self._situation(after, 1 - me)
            banned |= rules.repeats(situation, state.recent, len(state.recent))
            if len(state.history):
                banned |= rules.repeats(situation, state.history, state.moves + 1)
        mine, theirs = rules.colour_is(state.chains, me), rules.colour_is(state.chains, 1 - me)
        few = ((mine | theirs) & (seen.liberties == n) for n in (1, 2, 3))
        legal = seen.playable & ~banned & ~self.is_over(state)
        return [mine, theirs, *few, seen.playable & banned], legal

    def legal_actions(self, state: GoState) -> Bool[Array, " actions"]:
        return self.look(state).legal

    def observe(self, state: GoState) -> Observation:
        return self.look(state).observation

    def look(self, state: GoState) -> PositionInfo:
        marks, legal = self._marks(state)
        points = jnp.arange(self.points, dtype=jnp.int16)
        history = (points == state.last[k] for k in range(5))
        planes = jnp.stack([jnp.ones(self.points, bool), *marks, *history], -1)
        scalars = self._scalars(state)
        if state.ladders is not None:
            area = go_gpu.pack(go_katago.areas(state.chains, self.size, self.options.suicide))
            plain = (planes << jnp.arange(len(PLANES))).sum(-1, dtype=jnp.int32)
            planes = self._planes(go_katago.marks(plain, state.ladders, area, state.turn, state.last))
            scalars = go_katago.scalars(scalars)
        observation = Observation(planes.reshape(self.planes_shape), scalars)
        over, score = self.is_over(state), self._final_score(state)
        return PositionInfo(jnp.append(legal, ~over), observation, over, rules.results(score), score)

    def _planes(self, marks: Integer[Array, "*points"]) -> Bool[Array, "*points planes"]:
        return ((marks[..., None] >> jnp.arange(self.planes_shape[2], dtype=marks.dtype)) & 1) > 0

    def step_and_look(self, states: GoState, actions: Moves, stay: Which | None = None) -> tuple[GoState, PositionInfo]:
        stay = jnp.zeros(actions.shape, bool) if stay is None else stay
        fused, plain = self.fused_step_and_look, super().step_and_look
        return lax.platform_dependent(states, actions, stay, cuda=fused, default=plain)

    def fused_step_and_look(self, states: GoState, actions: Moves, stay: Which) -> tuple[GoState, PositionInfo]:
        """`step_and_look` as one GPU program."""
        fixed = go_gpu.GoRules(
            size=self.size,
            suicide=self.options.suicide,
            superko=self.superko,
            situational=self.options.ko == "situational",
            max_moves=self.max_moves,
        )
        before = go_gpu.GoPosition(*(getattr(states, name) for name in go_gpu.GoPosition._fields))
        new, seen = go_gpu.move_and_look(fixed, before, states.history, actions, stay, self._keys)
        moved = states._replace(**new._asdict())
        moved = moved._replace(history=jax.vmap(self._history)(moved))
        marks, scalars = seen.marks, jax.vmap(self._scalars)(moved)
        if states.ladders is not None:
            now = moved.chains, moved.ko, moved.turn.astype(jnp.int32)
            found = go_katago.seen_on_gpu(*now, self.size, self.options.suicide, self._ladder_limits)
            rests = (moved.moves == states.moves)[:, None, None]
            after = jax.vmap(go_katago.after)(states.ladders, found[:, 0], found[:, 1])
            ladders = jnp.where(rests, states.ladders, after)
            moved = moved._replace(ladders=ladders)
            marks = jax.vmap(go_katago.marks)(marks, ladders, found[:, 2:], moved.turn, moved.last)
            # Otherwise the compiler would compute the marks of a point again for each of its planes, and so on.
            marks, scalars = lax.optimization_barrier((marks, jax.vmap(go_katago.scalars)(scalars)))
        over = seen.ended > 0
        score = jnp.where(over, (2 * seen.area - states.komi).astype(jnp.float32) / 2, 0)
        legal = jnp.concatenate([(seen.marks & go_gpu.LEGAL) > 0, ~over[:, None]], 1)
        observation = Observation(self._planes(marks).reshape(-1, *self.planes_shape), scalars)
        return moved, PositionInfo(legal, observation, over, rules.results(score), score)

    def _scalars(self, state: GoState) -> Float32[Array, " scalars"]:
        """KataGo's global inputs 0-8, 14 and 18."""
        komi = jnp.where(state.turn == 1, 1, -1) * state.komi.astype(jnp.float32) / 2
        scaled, wave = go_katago.komi_inputs(komi, self.points)
        superko = {"simple": (0.0, 0.0), "positional": (1.0, 0.5), "situational": (1.0, -0.5)}[self.options.ko]
        passes = state.last == self.points
        rest = jnp.stack([scaled, *map(jnp.float32, superko), jnp.float32(self.options.suicide)])
        return jnp.concatenate([passes, rest, jnp.stack([passes[0], wave])]).astype(jnp.float32)

    def to_play(self, state: GoState) -> Int32[Array, ""]:
        return state.turn.astype(jnp.int32)

    def is_over(self, state: GoState) -> Bool[Array, ""]:
        return (state.last[:2] == self.points).all() | (state.moves >= self.max_moves)

    # The result

    def ownership(self, state: GoState, wanted: Array | bool = True) -> Int8[Array, "height width"]:
        """1 for Black's stones and points that only Black's stones reach, -1 for White's, 0 otherwise.

        A board that is not `wanted` may have any result, and does not slow down a batch.
        """
        stones = jnp.stack([rules.colour_is(state.chains, colour) for colour in (0, 1)])
        black, white = rules.reached(stones, state.chains == EMPTY, self.size, wanted)
        return (black.astype(jnp.int8) - white.astype(jnp.int8)).reshape(self.size, self.size)

    def score(self, state: GoState, wanted: Array | bool = True) -> Float32[Array, ""]:
        """Black's area minus White's minus komi, as the board stands; `wanted` as in `ownership`."""
        return self.ownership(state, wanted).sum(dtype=jnp.float32) - state.komi.astype(jnp.float32) / 2

    def _final_score(self, state: GoState) -> Float32[Array, ""]:
        over = self.is_over(state)
        return jnp.where(over, self.score(state, over), 0)

    def returns(self, state: GoState) -> Float32[Array, "2"]:
        return rules.results(self._final_score(state))

    def final_targets(self, state: GoState) -> dict[str, Array]:
        return {"ownership": self.ownership(state), "score": self.score(state)}

    def record_facts(self, state: GoState) -> dict[str, Array]:
        return {"komi": state.komi.astype(jnp.float32) / 2, "score": self.score(state)}

    @cached_property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return square_symmetries(self.size, self.num_actions)

    # Search trees

    def split(self, state: GoState) -> tuple[GoState, Array]:
        """Nodes store the last eight positions; the list of all of them is stored once per tree."""
        return state._replace(history=state.history[:0]), state.history

    def join(self, node: GoState, kept: Array) -> GoState:
        return node._replace(history=kept)

    # For people

    def render(self, state: GoState) -> str:
        chains = np.asarray(state.chains).reshape(self.size, self.size)
        cells = [["." if c == EMPTY else "XO"[(int(c) - 1) & 1] for c in row] for row in chains]
        rows = [str(self.size - r) for r in range(self.size)]
        point = int(state.ko)
        notes = {
            "to play": PLAYERS[int(state.turn)],
            "komi": f"{int(state.komi) / 2:g}",
            "ko": "none" if point == NO_POINT else self._action_name(state, point),
        }
        return render_grid(cells, GO_LETTERS[: self.size], rows, notes)

    def from_text(self, text: str) -> GoState:
        cells, notes = parse_grid(text, (self.size, self.size), ".XO", ("to play", "komi", "ko"), self.name)
        turn = player_number(notes, PLAYERS, self.name)
        chains = rules.chains_of([".XO".index(cell) - 1 for row in cells for cell in row], self.size)
        try:
            half_points = 2 * float(notes["komi"])
        except ValueError:
            half_points = float("nan")
        if not (half_points.is_integer() and abs(half_points) <= 800):
            raise ValueError(f"go: komi: expected a number from -400 to 400, in halves, got {notes['komi']!r}")
        names = {self._action_name(None, p): p for p in range(self.points)} | {"none": NO_POINT}
        if notes["ko"] not in names:
            raise ValueError(f"go: ko: expected a point or none, got {notes['ko']!r}")
        point = names[notes["ko"]]
        if point != NO_POINT and chains[point] != EMPTY:
            raise ValueError(f"go: ko: there is a stone on {notes['ko']}")
        return self.position(chains, turn, point)._replace(komi=jnp.int16(int(half_points)))

    def _action_name(self, state: GoState | None, action: int) -> str:
        if action == self.points:
            return "pass"
        return f"{GO_LETTERS[action % self.size]}{self.size - action // self.size}"
