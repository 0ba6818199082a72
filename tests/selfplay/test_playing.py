"""All games are always busy, none is lost, and moves are what searches of those positions say."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from tengen import search
from tengen.selfplay.playing import Actor
from tests.helpers.game_recording import jit
from tests.helpers.replayed_games import replays
from tests.helpers.selfplay_plans import (
    CALLS,
    CERTAIN,
    CROWDED,
    EVALUATOR,
    GO,
    LEAFY,
    PHASES,
    SESSION,
    Plan,
    Played,
    by_game,
    evaluate,
    play,
    played,
    selfplay,
)


def at_root(actor: Actor, name: str) -> np.ndarray:
    """[B]: what a table of the trees says of their roots."""
    return np.asarray(getattr(actor.tree, name))[np.arange(len(actor.number)), np.asarray(actor.tree.root)]


def is_over(actor: Actor) -> np.ndarray:
    """Bool[B]: games that wait to be handed out."""
    return at_root(actor, "over") > 0


def searched_again(games: Played) -> dict[tuple[int, int], tuple[np.ndarray, float, int]]:
    """(Game, ply) -> policy, value and move of a search of its own, with as many simulations."""
    plan, rows = games.plan, games.everything.rows
    replayed = dict(zip(games.everything.number[:, 1].tolist(), replays(games), strict=True))
    names = list(zip(rows["game"][:, 1].tolist(), rows["ply"].tolist(), strict=True))
    states = [replayed[number].state(ply) for number, ply in names]
    budget = np.where(rows["policy_weight"] > 0, plan.searching.simulations, plan.settings.cheap_simulations)

    def run(states: Any, budget: Any) -> search.Result:
        told = (lambda observation: evaluate(plan.game.num_actions)(EVALUATOR, observation), plan.game, states)
        return search.run(*told, jax.random.key(0), plan.searching, budget - 1)  # the root's own is one of them

    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    result = jax.tree.map(np.asarray, jit(run)(stacked, budget.astype(np.int32)))
    return {name: (result.policy[k], result.value[k], result.action[k]) for k, name in enumerate(names)}


def test_rows_and_moves_are_what_a_search_of_the_position_says() -> None:
    games = played(CERTAIN, CALLS, PHASES)
    found, again = games.everything, searched_again(games)
    names = found.number[:, 1].tolist()
    actions, values = (dict(zip(names, table, strict=True)) for table in (found.action, found.value))
    assert len(again) == len(found.rows["ply"])
    for k, ((number, ply), (policy, value, action)) in enumerate(again.items()):
        assert action == actions[number][ply]
        assert abs(value - values[number][ply]) < 1e-3  # rows have averages of these, see test_history
        if found.rows["policy_weight"][k]:
            np.testing.assert_allclose(found.rows["policy"][k], policy, atol=1e-3)


@pytest.mark.parametrize("plan", [CERTAIN, pytest.param(LEAFY, marks=pytest.mark.slow)])
def test_every_game_moves_exactly_when_its_budget_is_spent(plan: Plan) -> None:
    how, actor = selfplay(plan), played(plan, CALLS, PHASES).actors[0]
    games, leaves = plan.settings.games, plan.searching.leaves
    spent, new = np.zeros(games, int), np.ones(games, bool)
    moves = {True: 0, False: 0}
    for _ in range(60):
        before = jax.tree.map(np.asarray, replace(actor, key=0))
        new = np.where(spent == 0, at_root(actor, "visits") == 0, new)
        actor, _ = how.play(EVALUATOR, actor, np.int32(1), np.uint32(SESSION))
        spent += how.stride
        budget = np.where(before.full, plan.searching.simulations, plan.settings.cheap_simulations)
        # A step is so many simulations; a new root takes one for itself, and there is one after it at least.
        steps = np.maximum(-(-budget // leaves), 1 + new)
        moved = (before.number != actor.number) | (before.history.ply != actor.history.ply)
        assert (moved == (spent == steps)).all()
        if leaves == 1:
            assert actor.evaluations - before.evaluations == games * how.stride
        for was_full in (True, False):
            moves[was_full] += (moved & (before.full == was_full)).sum()
        spent[moved] = 0
    assert min(moves.values()) > 20


@pytest.mark.slow
@pytest.mark.parametrize("plan", [CERTAIN, GO])
def test_with_enough_room_no_game_ever_waits(plan: Plan) -> None:
    games = played(plan, CALLS, PHASES)
    for number, actor in enumerate(games.actors):
        assert actor.evaluations == number * PHASES * selfplay(plan).stride * plan.settings.games
        assert not is_over(actor).any()


@pytest.mark.slow
@pytest.mark.parametrize("plan", [CERTAIN, CROWDED, GO])
def test_every_game_is_handed_out_once_or_still_played(plan: Plan) -> None:
    games = played(plan, CALLS, PHASES)
    handed_out: list[int] = []
    for actor, call in zip(games.actors[1:], games.calls, strict=True):
        handed_out += call.number[:, 1].tolist()
        assert (call.number[:, 0] == SESSION).all()
        assert sorted([*handed_out, *actor.number.tolist()]) == list(range(int(actor.begun)))
        # Whole games: rows come in the call that their game comes in.
        assert set(call.rows["game"][:, 1].tolist()) <= set(call.number[:, 1].tolist())


@pytest.mark.slow
def test_games_that_find_no_room_come_in_the_next_call() -> None:
    games, how = played(CROWDED, CALLS, PHASES), selfplay(CROWDED)
    waited = 0
    for before, actor, call in zip(games.actors, games.actors[1:], games.calls, strict=False):
        waiting = is_over(before)
        waited += waiting.sum()
        assert len(call.length) <= how.games_room
        assert len(call.rows["ply"]) <= how.rows_room
        # The others went on meanwhile: only those that had to wait missed one phase.
        step = how.stride * CROWDED.settings.games
        asked = actor.evaluations - before.evaluations + how.stride * waiting.sum()
        assert asked % step == 0
        assert 0 < asked <= PHASES * step
        left = set(before.number[waiting].tolist()) - set(call.number[:, 1].tolist())
        assert not left or asked == step  # the call ended at once, full of others
    assert waited > 5


def test_the_same_key_plays_the_same_games() -> None:
    one, same, other = (play(CERTAIN, 2, PHASES, seed) for seed in (5, 5, 6))
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, one.everything, same.everything)))
    assert not np.array_equal(one.everything.action[:8], other.everything.action[:8])


def surprise(games: Played, plies: range, temperature: Any) -> float:
    """How far the moves at `plies` are from draws with policy ** (1 / temperature(ply)), in standard deviations."""
    rows, found = games.everything.rows, games.everything
    actions = dict(zip(found.number[:, 1].tolist(), found.action, strict=True))
    full = (rows["policy_weight"] > 0) & np.isin(rows["ply"], plies)
    policies = rows["policy"][full].astype(np.float64)
    total, variance = 0.0, 0.0
    for policy, ply, (_, number) in zip(policies, rows["ply"][full], rows["game"][full], strict=True):
        logs = np.log(policy, where=policy > 0, out=np.full_like(policy, -np.inf))
        chance = np.exp((logs - logs.max()) / temperature(float(ply)))
        chance /= chance.sum()
        known = np.where(chance > 0, logs, 0)
        mean = (chance * known).sum()
        total += known[actions[int(number)][ply]] - mean
        variance += (chance * (known - mean) ** 2).sum()
    return total / variance**0.5


@pytest.mark.slow
def test_temperature_falls_with_the_ply() -> None:
    games = played(GO, CALLS, PHASES)

    def falls(half: float) -> Any:
        return lambda ply: 0.2 + 1.3 * 0.5 ** (ply / half)

    wrong = [
        (range(4), lambda _: 0.5),
        (range(4, 8), falls(2)),
        (range(6, 12), falls(16)),
        (range(8, 16), lambda _: 0.2),
    ]
    for plies, temperature in wrong:
        assert abs(surprise(games, plies, falls(4))) < 3
        assert abs(surprise(games, plies, temperature)) > 5  # or the test would not notice


def test_memory_is_counted() -> None:
    how = selfplay(CERTAIN)
    arrays = jax.tree.leaves((replace(played(CERTAIN, CALLS, PHASES).actors[0], key=0), how._empty()))
    counted = sum(np.asarray(leaf).nbytes for leaf in arrays)
    assert 0 <= how.bytes_needed() - counted <= 64  # the key


@pytest.mark.slow
def test_whether_rows_of_cheap_searches_are_kept_changes_nothing_else() -> None:
    every = play(CERTAIN, 4, PHASES, seed=3).everything
    only = play(replace(CERTAIN, settings=replace(CERTAIN.settings, cheap_weight=0.0)), 4, PHASES, seed=3).everything
    full = every.rows["policy_weight"] > 0
    for name, values in only.rows.items():
        np.testing.assert_array_equal(values, every.rows[name][full])
    np.testing.assert_array_equal(only.action, every.action)


@pytest.mark.slow
def test_decided_games_are_searched_in_full_no_more() -> None:
    """Every value says who wins, and a game is decided when four searches in a row agree."""
    settings = replace(CERTAIN.settings, full_share=1.0, cheap_weight=0.0, decided_value=0.0, decided_full_share=0.0)
    found = play(replace(CERTAIN, settings=replace(settings, opening_moves=1)), calls=3, phases=20)
    everything, rows = found.everything, by_game(found)
    cheap = 0
    for number, replay in enumerate(replays(found)):
        plies = rows[int(everything.number[number, 1])]
        lead = 0
        for ply in range(int(everything.opening[number]), int(everything.length[number])):
            full = ply in plies
            assert full == (abs(lead) < 4)
            cheap += not full
            value = float(everything.value[number, ply]) * (1 - 2 * int(replay.to_play[ply]))
            lead = max(lead, 0) + 1 if value >= 0 else min(lead, 0) - 1
    assert cheap > 10
