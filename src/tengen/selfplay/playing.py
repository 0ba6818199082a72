"""Thousands of games at once, each with its own search, in one compiled loop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from tengen import search
from tengen.config.settings.search import SearchSettings
from tengen.config.settings.selfplay import SelfplaySettings, stage_at, stride
from tengen.data.format.rows import RowFormat
from tengen.games.core import Game, Observation
from tengen.nets.outputs import Evaluation
from tengen.search.result import SearchResult
from tengen.search.tree import Tree
from tengen.search.walk import row_at
from tengen.selfplay.history import (
    Finished,
    FinishedGames,
    History,
    Moment,
    add,
    begun,
    blank,
    empty,
    finish,
    remember,
)
from tengen.selfplay.openings import PreparedGames, prepare
from tengen.selfplay.opponents import Opponent, answer, seats

MOST_PHASES = 48
"""The most phases of one call of `play`."""

_DECIDING = 4  # searches in a row that must agree on who wins

Evaluate = Callable[[Any, Observation], Evaluation]
"""Evaluates [B, ...] positions by a network with these parameters."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Actor:
    """B games being played."""

    tree: Tree
    history: History
    full: Array  # Bool[B]: the current search is a full one
    lead: Array  # Int32[B]: searches in a row that were certain of a win of player 0; negative: of player 1
    number: Array  # UInt32[B]: of the game, counted from when the actor was made
    begun: Array  # UInt32: games so far
    budgets: Array  # Int32[2]: simulations of a full and of a cheap search
    evaluations: Array  # Float32: positions evaluated for a search
    failed: Array  # Int32: searches without a value or a move, because the network gave no finite numbers
    key: Array


class Selfplay:
    """Plays games: compiled functions of an `Actor` and the parameters of a network."""

    def __init__(
        self,
        game: Game,
        evaluate: Evaluate,
        searching: SearchSettings,
        settings: SelfplaySettings,
        form: RowFormat,
        opponents: Sequence[Opponent] = (),
    ) -> None:
        self.game = game
        self.evaluate = evaluate
        self.searching = searching
        self.settings = settings
        self.form = form
        self.opponents = tuple(opponents)
        self.seats = seats(self.opponents, settings.games)
        self.stride = stride(searching.simulations, settings, searching.leaves)
        self.together = max(1, settings.games // 64)  # games that are ended at once
        # A game makes at most one move in a phase, so this is enough unless all games end together.
        self.rows_room = MOST_PHASES * settings.games + self.together * game.max_moves
        self.games_room = MOST_PHASES * settings.games // 2 + self.together
        self.start = jax.jit(self._start)
        self.adopt = jax.jit(self._adopt)
        self.play = jax.jit(self._play, donate_argnums=1)

    def bytes_needed(self) -> int:
        """The memory of an actor and of its finished games."""
        shapes = self.start.eval_shape(jax.eval_shape(lambda: jax.random.key(0)))
        out = jax.eval_shape(self._empty)
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves((shapes, out)) if leaf.dtype.itemsize)

    def _start(self, key: Array) -> Actor:
        games = self.settings.games
        opening, begin, key = jax.random.split(key, 3)
        openings = prepare(self.game, self.settings, games, opening)
        tree = search.plant(self.game, self.searching, openings.states)
        everywhere = jnp.ones(games, bool)
        actor = Actor(
            tree=tree,
            history=begun(blank(self.form, games, self.game.max_moves), openings, everywhere),
            full=everywhere,
            lead=jnp.zeros(games, jnp.int32),
            number=jnp.arange(games, dtype=jnp.uint32),
            begun=jnp.uint32(games),
            budgets=self._budgets,
            evaluations=jnp.float32(0),
            failed=jnp.int32(0),
            key=key,
        )
        return self._begin(actor, begin, everywhere)

    def _adopt(self, actor: Actor, states: Any) -> Actor:
        """Continue the games of an actor that was made with other settings; its searches begin again at `states`.

        `actor` needs no tree. The number of games and the format of the rows must be the same.
        """
        begin, key = jax.random.split(actor.key)
        tree = search.plant(self.game, self.searching, states)
        actor = replace(actor, tree=tree, budgets=self._budgets, key=key)
        return self._begin(actor, begin, jnp.ones(self.settings.games, bool))

    @property
    def _budgets(self) -> Array:
        """The budgets of the first stage; for later stages, callers change them between two calls."""
        first = stage_at(0.0, self.searching.simulations, self.settings)
        return jnp.array([first.simulations, first.cheap], jnp.int32)

    def _empty(self) -> Finished:
        facts = jax.eval_shape(lambda: self._facts(self.game.init(jax.random.key(0)), jnp.int8(0)))
        return empty(self.form, self.rows_room, self.games_room, self.game.max_moves, facts)

    def _facts(self, last: Any, seat: Array) -> dict[str, Array]:
        """Facts for the record: those of the game, and which opponent played in it (-1: none)."""
        facts = self.game.record_facts(last)
        return facts | {"opponent": seat} if self.opponents else facts

    def _play(self, parameters: Any, actor: Actor, phases: Array, session: Array) -> tuple[Actor, Finished]:
        """Play for `phases` times `stride` simulations; returns the games, and those that ended.

        Stops earlier if there is no more room for finished games. `session` (UInt32) distinguishes the numbers of the
        games from those of other actors.
        """
        prepared, key = jax.random.split(actor.key)
        openings = prepare(self.game, self.settings, self.settings.games, prepared)
        actor = replace(actor, key=key)
        phase = partial(self._phase, parameters, openings, session)

        def go_on(now: tuple[Array, Actor, Finished]) -> Array:
            return (now[0] < phases) & self._room(now[2])

        start = (jnp.int32(0), actor, self._empty())
        _, actor, finished = lax.while_loop(go_on, lambda now: (now[0] + 1, *phase(*now[1:])), start)
        return actor, finished

    def _room(self, finished: Finished) -> Array:
        """Bool: whether there is room for the games that are ended at once, whatever their lengths."""
        return finished.room(self.together * self.game.max_moves, self.together)

    def _phase(
        self, parameters: Any, openings: PreparedGames, session: Array, actor: Actor, finished: Finished
    ) -> tuple[Actor, Finished]:
        """Run some simulations; then the games whose searches are done move, and those that end are replaced."""
        simulate = partial(search.simulate, partial(self.evaluate, parameters))
        tree = lax.fori_loop(0, self.stride, lambda _, tree: simulate(tree), actor.tree)
        evaluated = (tree.done - actor.tree.done).sum() + (_unevaluated(actor.tree) & ~_unevaluated(tree)).sum()
        choose, begin, key = jax.random.split(actor.key, 3)
        actor = replace(actor, tree=tree, key=key, evaluations=actor.evaluations + evaluated)
        actor, moved = self._move(parameters, actor, choose)
        actor, finished, replaced = self._end(actor, openings, session, finished)
        return self._begin(actor, begin, moved | replaced), finished

    def _move(self, parameters: Any, actor: Actor, key: Array) -> tuple[Actor, Array]:
        """Make the moves of the searches that are done; also returns Bool[B]: where."""
        game, settings, tree = self.game, self.settings, actor.tree
        states = tree.states(tree.root)
        nothing = jnp.zeros(settings.games, jnp.int32)
        _, look = game.step_and_look(states, nothing, jnp.ones(settings.games, bool))
        moves = (tree.done >= tree.budget) & ~look.over
        fall = 0.5 ** (actor.history.ply / settings.halving_plies)
        temperature = settings.last_temperature + (settings.temperature - settings.last_temperature) * fall
        result = search.summarise(tree, key, temperature)
        player = jax.vmap(game.to_play)(states)
        action, theirs = answer(self.opponents, self.seats, result.action, player, states, moves, key)
        moment = Moment(
            action=action,
            player=player,
            value=result.value,
            score=result.score,
            surprise=result.surprise,
            full=actor.full & ~theirs,  # their moves are not learned from
            observation=look.observation,
            policy=result.policy,
            facts={},
        )
        if actor.history.facts:
            facts = search_facts(tree, result, action)
            facts |= network_facts(self.evaluate, parameters, look.observation)
            policy = jnp.where(look.legal, result.policy, -1)
            moment = moment._replace(policy=policy, facts=facts)
        failed = actor.failed + (moves & ~(jnp.isfinite(result.value) & (result.action >= 0))).sum()
        history = remember(actor.history, moment, moves)
        lead = jnp.where(moves, _longer(actor.lead, moment, settings.decided_value), actor.lead)
        if settings.reuse:
            tree = search.advance(tree, action, moves)
        else:
            tree = search.restart(tree, jax.vmap(game.step)(states, action), moves)
        return replace(actor, tree=tree, history=history, lead=lead, failed=failed), moves

    def _end(
        self, actor: Actor, openings: PreparedGames, session: Array, finished: Finished
    ) -> tuple[Actor, Finished, Array]:
        """Replace the games that are over, as far as there is room, by new ones; also returns Bool[B]: where."""
        states = actor.tree.states(actor.tree.root)
        over = jax.vmap(self.game.is_over)(states)

        def some(carry: tuple[Finished, Array]) -> tuple[Finished, Array]:
            finished, waiting = carry
            places = jnp.nonzero(waiting, size=self.together, fill_value=len(waiting))[0]
            real = places < len(waiting)
            chosen = jnp.minimum(places, len(waiting) - 1)
            ended = self._ended(actor, states, session, chosen, real)
            return add(finished, ended), waiting.at[places].set(False, mode="drop")

        def go_on(carry: tuple[Finished, Array]) -> Array:
            return carry[1].any() & self._room(carry[0])

        finished, waiting = lax.while_loop(go_on, some, (finished, over))
        gone = over & ~waiting
        number = jnp.cumsum(gone) - 1
        fresh = openings.take(actor.begun.astype(jnp.int32) + number)
        actor = replace(
            actor,
            tree=search.restart(actor.tree, fresh.states, gone),
            history=begun(actor.history, fresh, gone),
            lead=jnp.where(gone, 0, actor.lead),
            number=jnp.where(gone, actor.begun + number.astype(jnp.uint32), actor.number),
            begun=actor.begun + gone.sum(dtype=jnp.uint32),
        )
        return actor, finished, gone

    def _ended(self, actor: Actor, states: Any, session: Array, chosen: Array, real: Array) -> FinishedGames:
        """The games with the numbers `chosen` Int32[E]."""
        history, last = jax.tree.map(lambda leaf: leaf[chosen], (actor.history, states))
        number = jnp.stack([jnp.broadcast_to(session, chosen.shape), actor.number[chosen]], -1).astype(jnp.uint32)
        extra = jax.vmap(self._facts)(last, jnp.asarray(self.seats)[chosen])
        weighing = {name: getattr(self.settings, name) for name in ("cheap_weight", "surprise_share", "value_horizon")}
        return finish(self.game, self.form, history, last, number, extra, real, **weighing)

    def _begin(self, actor: Actor, key: Array, which: Array) -> Actor:
        settings = self.settings
        draw, noise = jax.random.split(key)
        decided = jnp.abs(actor.lead) >= _DECIDING
        share = settings.full_share * jnp.where(decided, settings.decided_full_share, 1.0)
        full = jax.random.uniform(draw, which.shape) < share
        budget = jnp.where(full, *actor.budgets)
        # The evaluation of a new root is one of the steps, so that all searches end together with a phase.
        budget = jnp.maximum(budget - self.searching.leaves * _unevaluated(actor.tree), 1)
        tree = search.begin(actor.tree, noise, budget.astype(jnp.int32), which)
        return replace(actor, tree=tree, full=jnp.where(which, full, actor.full))


def _longer(lead: Array, moment: Moment, certain: float) -> Array:
    """Int32[B]: `Actor.lead` after one more search."""
    value = jnp.where(moment.player == 0, moment.value, -moment.value)
    wins = jnp.maximum(lead, 0) + 1, jnp.minimum(lead, 0) - 1
    return jnp.where(value >= certain, wins[0], jnp.where(value <= -certain, wins[1], 0))


def _unevaluated(tree: Tree) -> Array:
    """Bool[B]: where the root has not been evaluated."""
    return tree.visits[jnp.arange(len(tree.root)), tree.root] == 0


# What Lc0's training records hold about a search besides its policy and value; see data/format/lc0_writing.py.


def search_facts(tree: Tree, result: SearchResult, action: Array) -> dict[str, Array]:
    """Facts about the search with this result, and about the move that is played; [B] each."""
    return jax.vmap(_facts_of)(tree, result.policy, result.value, action) | {"policy_kld": result.surprise}


def network_facts(evaluate: Any, parameters: Any, observation: Observation) -> dict[str, Array]:
    """Other outputs of a network for the positions [B, ...]: the probability of a draw, and the moves left."""
    outputs = evaluate.outputs(parameters, observation)
    draw = jax.nn.softmax(outputs.value)[:, 1]
    moves_left = jnp.full_like(draw, jnp.nan) if outputs.moves_left is None else outputs.moves_left
    return {"network_draw": draw, "network_moves_left": moves_left}


def _facts_of(tree: Tree, policy: Array, value: Array, action: Array) -> dict[str, Array]:
    row = row_at(tree, tree.root, None)
    # The most visited move; a policy below 1 only decides between equal visits.
    best = jnp.argmax(jnp.where(row.legal, row.visits + 0.5 * policy, -1))
    facts = {"network_value": row.first_value[0], "visits": row.node_visits[0], "best": best.astype(jnp.float32)}
    for name, move in (("best", best), ("played", action)):
        child = tree.child[tree.root, move].astype(jnp.int32)
        # A move without a visit has the value of the position.
        facts[f"{name}_value"] = jnp.where(row.visits[move] > 0, row.means[move], value)
        facts[f"{name}_ends"] = jnp.where(child >= 0, tree.over[child], 0).astype(jnp.float32)
    return facts
