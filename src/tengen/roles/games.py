"""Thousands of games at once, in lockstep, for one of their roles: every step gives one sample per game.

In all games of a lane it is the same role's turn. A step lets it act in every game, then the other role until it is the
first one's turn again. Finished games are replaced by new ones at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32

from tengen.games.core import Game, freeze
from tengen.games.hironaka import live
from tengen.games.players import Rule, draw

Rate = Array | float
Reward = Callable[[str, Any, Any, Array], Array]
"""(role, state, next state, done) of ONE game and a move of either role -> Float32[]: its reward for the role."""


class Transition(NamedTuple):
    """From a role's move to its next one, or to the end."""

    observations: dict[str, Array]  # planes Bool[B, H, W, C], scalars Float32[B, S], legal Bool[B, A]
    actions: Int32[Array, "*batch"]
    rewards: Float32[Array, "*batch"]  # of all moves in between; if it spans several own moves, later ones discounted
    dones: Bool[Array, "*batch"]  # the game has ended
    next_observations: dict[str, Array]  # as the role sees it at its next move, or at the end


class RoleLane(NamedTuple):
    """B games that wait for one role."""

    states: Any  # [B, ...]
    tail: Transition  # [N - 1, B, ...]: own moves whose samples of N are not complete


class Outcome(NamedTuple):
    """Games that were played to their end."""

    returns: Float32[Array, "games 2"]
    length: Int32[Array, " games"]  # moves of both


@dataclass(frozen=True)
class Returns:
    """A reward: the game's result, at its end."""

    game: Game

    def __call__(self, role: str, state: Any, next_state: Any, done: Array) -> Array:
        return jnp.where(done, self.game.returns(next_state)[self.game.roles.index(role)], 0)


def finished(role: str, state: Any, next_state: Any, done: Array) -> Array:
    """Hironaka's game: 1 to the host and -1 to the agent when one point is left, nothing at the move limit."""
    return jnp.where(live(next_state.points).sum() <= 1, 1.0 if role == "host" else -1.0, 0.0)


@dataclass(frozen=True)
class FusedGame:
    """A game, the rules by which its roles are played, and the reward. Everything here is pure and compiled.

    `params` are {role: parameters of its rule}; they are arguments, so that new ones need no new compilation.
    """

    game: Game
    first: Rule
    second: Rule | None
    reward: Reward

    @staticmethod
    def of(game: Game, rules: Mapping[str, Rule], reward: Reward) -> "FusedGame":
        first, *others = (rules[name] for name in game.roles)
        return FusedGame(game, first, others[0] if others else None, reward)

    def observe(self, states: Any) -> dict[str, Array]:
        """What the player to move sees of states [B, ...]."""
        return jax.vmap(partial(_observed, self.game))(states)

    @partial(jax.jit, static_argnames=("self", "role", "games", "n_step"))
    def start(self, role: str, games: int, n_step: int, params: Any, key: Array, er: Rate, others_er: Rate) -> RoleLane:
        """New games for a role, its first moves for samples of `n_step` included."""
        first, begin, play = jax.random.split(key, 3)
        states = jax.vmap(self.game.init)(jax.random.split(first, games))
        states = self._turn(role, params, begin, states, others_er)
        step = partial(self._step, role, params, er, others_er)
        states, tail = lax.scan(step, states, jax.random.split(play, n_step - 1))
        return RoleLane(states, tail)

    @partial(jax.jit, static_argnames=("self", "role", "steps"))
    def roll_out(
        self, role: str, steps: int, lane: RoleLane, params: Any, key: Array, er: Rate, others_er: Rate, gamma: Rate
    ) -> tuple[RoleLane, Transition, Array]:
        """Make `steps` own moves in each of the B games: the lane after them, steps * B samples, and games that ended.

        The role plays a random legal action with probability `er`, the other role with `others_er`. A sample spans as
        many own moves as the lane was started with; rewards of later moves are multiplied by gamma for each move.
        """
        step = partial(self._step, role, params, er, others_er)
        states, moves = lax.scan(step, lane.states, jax.random.split(key, steps))
        moves = jax.tree.map(lambda old, new: jnp.concatenate([old, new]), lane.tail, moves)
        n_step = len(moves.actions) - steps + 1
        samples = _spanned(moves, steps, n_step, gamma)
        tail = jax.tree.map(lambda leaf: leaf[steps:], moves)
        flat = jax.tree.map(lambda leaf: leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:]), samples)
        return RoleLane(states, tail), flat, moves.dones[n_step - 1 :].sum()

    @partial(jax.jit, static_argnames=("self", "games"))
    def play(self, games: int, params: Any, key: Array) -> Outcome:
        """Play new games to their end, without exploration."""
        first, key = jax.random.split(key)
        states = jax.vmap(self.game.init)(jax.random.split(first, games))
        length = jnp.zeros(games, jnp.int32)

        def goes_on(carry: Any) -> Array:
            return ~jax.vmap(self.game.is_over)(carry[1]).all()

        def move(carry: Any) -> Any:
            key, states, length = carry
            key, now = jax.random.split(key)
            over = jax.vmap(self.game.is_over)(states)
            turn = jax.vmap(self.game.to_play)(states)
            actions = jnp.zeros(games, jnp.int32)
            for index, role in enumerate(self.game.roles):
                mine = ~over & (turn == index)
                actions = jnp.where(mine, self._choose(role, params, now, states, mine, 0.0), actions)
            return key, jax.vmap(self.game.step)(states, actions), length + ~over

        _, states, length = lax.while_loop(goes_on, move, (key, states, length))
        return Outcome(jax.vmap(self.game.returns)(states), length)

    def _choose(
        self, role: str, params: Any, key: Array, states: Any, which: Bool[Array, " batch"], er: Rate
    ) -> Int32[Array, " batch"]:
        """What the role plays, or with probability `er` a random legal action."""
        asked, trying, drawn = jax.random.split(key, 3)
        rule = (self.first, self.second)[self.game.roles.index(role)]
        assert rule is not None
        actions = rule(params[role], asked, states, which).astype(jnp.int32)
        random = draw(drawn, jax.vmap(self.game.legal_actions)(states))
        return jnp.where(jax.random.uniform(trying, actions.shape) < er, random, actions)

    def _step(
        self, role: str, params: Any, er: Rate, others_er: Rate, states: Any, key: Array
    ) -> tuple[Any, Transition]:
        own, answer, again = jax.random.split(key, 3)
        seen = self.observe(states)
        everywhere = jnp.ones(len(seen["legal"]), bool)
        actions = self._choose(role, params, own, states, everywhere, er)
        moved = jax.vmap(self.game.step)(states, actions)
        rewards = self._worth(role, states, moved)
        ended, rewards = self._answers(role, params, answer, moved, others_er, rewards)
        done = jax.vmap(self.game.is_over)(ended)
        samples = Transition(seen, actions, rewards, done, self.observe(ended))
        return self._turn(role, params, again, ended, others_er), samples

    def _answers(
        self, role: str, params: Any, key: Array, states: Any, others_er: Rate, rewards: Array
    ) -> tuple[Any, Array]:
        """Let the other role move until it is this one's turn or the game is over, and add up the rewards."""

        def waiting(states: Any) -> Array:
            return ~jax.vmap(self.game.is_over)(states) & ~self._is_turn(role, states)

        def move(carry: Any) -> Any:
            key, states, rewards = carry
            key, now = jax.random.split(key)
            which = waiting(states)
            actions = self._choose(other, params, now, states, which, others_er)
            moved = jax.vmap(self.game.step)(states, actions)
            moved = jax.vmap(freeze)(~which, states, moved)
            return key, moved, rewards + jnp.where(which, self._worth(role, states, moved), 0)

        others = [name for name in self.game.roles if name != role]
        if not others:
            return states, rewards
        (other,) = others
        carry = lax.while_loop(lambda carry: waiting(carry[1]).any(), move, (key, states, rewards))
        return carry[1], carry[2]

    def _turn(self, role: str, params: Any, key: Array, states: Any, others_er: Rate) -> Any:
        """Replace finished games by new ones, and play these until it is the role's turn."""

        def ready(states: Any) -> Array:
            return ~jax.vmap(self.game.is_over)(states) & self._is_turn(role, states)

        def again(carry: Any) -> Any:
            key, states = carry
            key, begin, play = jax.random.split(key, 3)
            over = jax.vmap(self.game.is_over)(states)
            new = jax.vmap(self.game.init)(jax.random.split(begin, len(over)))
            states = jax.vmap(freeze)(~over, states, new)
            states, _ = self._answers(role, params, play, states, others_er, jnp.zeros(len(over)))
            return key, states

        return lax.while_loop(lambda carry: ~ready(carry[1]).all(), again, (key, states))[1]

    def _is_turn(self, role: str, states: Any) -> Bool[Array, " batch"]:
        return jax.vmap(self.game.to_play)(states) == self.game.roles.index(role)

    def _worth(self, role: str, states: Any, moved: Any) -> Float32[Array, " batch"]:
        done = jax.vmap(self.game.is_over)(moved)
        return jax.vmap(partial(self.reward, role))(states, moved, done).astype(jnp.float32)


def one_sample(game: Game) -> Transition:
    """The shapes and types of ONE sample."""

    def made() -> Transition:
        seen = _observed(game, game.init(jax.random.key(0)))
        return Transition(seen, jnp.int32(0), jnp.float32(0), jnp.bool_(False), seen)

    return jax.eval_shape(made)


def _observed(game: Game, state: Any) -> dict[str, Array]:
    look = game.look(state)
    return {**look.observation._asdict(), "legal": look.legal}


def _spanned(moves: Transition, steps: int, n_step: int, gamma: Rate) -> Transition:
    """[steps, B, ...] samples that span `n_step` own moves, from [steps + n_step - 1, B, ...] of single moves."""
    rewards, running = jnp.zeros_like(moves.rewards[:steps]), jnp.ones_like(moves.rewards[:steps])
    last = jnp.arange(steps)[:, None] + jnp.zeros_like(moves.actions[:steps])  # where each sample ends
    for ahead in range(n_step):
        now = slice(ahead, ahead + steps)
        last = jnp.where(running > 0, jnp.arange(steps)[:, None] + ahead, last)
        rewards += gamma**ahead * running * moves.rewards[now]
        running *= 1 - moves.dones[now].astype(jnp.float32)
    games = jnp.arange(last.shape[1])[None, :]
    seen = {name: leaf[last, games] for name, leaf in moves.next_observations.items()}
    first = {name: leaf[:steps] for name, leaf in moves.observations.items()}
    return Transition(first, moves.actions[:steps], rewards, running == 0, seen)
