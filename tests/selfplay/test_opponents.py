"""Games in which somebody else makes the moves of one side."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.config import load
from tengen.config.settings.search import SearchSettings
from tengen.config.settings.selfplay import SelfplaySettings, named
from tengen.data.format.rows import RowFormat
from tengen.errors import TengenError
from tengen.games.hironaka import HOSTS, Fixed
from tengen.games.players import First
from tengen.nets import saving
from tengen.selfplay.collector import on_host
from tengen.selfplay.opponents import NOBODY, Opponent, opponents, seats
from tengen.selfplay.playing import Selfplay
from tests.helpers.game_recording import jit
from tests.helpers.selfplay_plans import EVALUATOR, SESSION, evaluate

GAME: Any = games.make("hironaka", max_points=3, max_value=5, max_moves=12)
SEATED = (
    Opponent("first", 1, 0.5, First(GAME)),
    Opponent("zeillinger", 0, 0.25, Fixed(GAME, HOSTS["zeillinger"])),
)


@pytest.fixture(scope="module")
def played() -> Any:
    """Two calls of eight games: four against the agent, two against the host, two among themselves."""
    settings = SelfplaySettings(games=8, full_share=1.0, opening_moves=0)
    form = RowFormat.of(GAME, ())
    how = Selfplay(GAME, evaluate(GAME.num_actions), SearchSettings(simulations=4), settings, form, SEATED)
    actor = jit(how._start)(jax.random.key(5))
    _, finished = jit(how._play)(EVALUATOR, actor, np.int32(40), np.uint32(SESSION))
    return jax.tree.map(np.asarray, on_host(finished))


@pytest.mark.slow
def test_opponents_make_their_moves_and_nobody_learns_them(played: Any) -> None:
    """Every game is replayed with the rules: who moved how, and which rows there are of it."""
    step, look = jax.jit(GAME.step), jax.jit(GAME.to_play)
    choices = [jax.jit(lambda state, rule=rule: rule(GAME, jax.random.key(0), state)) for rule in _rules()]
    start = jax.jit(GAME.init)
    rows = {(int(game), int(ply)) for (_, game), ply in zip(played.rows["game"], played.rows["ply"], strict=True)}
    seen: dict[int, int] = {}
    free = 0
    for place in range(len(played.length)):
        seat = int(played.extra["opponent"][place])
        seen[seat] = seen.get(seat, 0) + 1
        state = start(jax.random.wrap_key_data(jnp.asarray(played.seed[place])))
        for ply in range(played.length[place]):
            action = int(played.action[place, ply])
            theirs = seat != NOBODY and int(look(state)) == SEATED[seat].player
            assert ((int(played.number[place, 1]), ply) in rows) == (not theirs)
            if theirs:
                assert action == int(choices[seat](state))
            elif seat != 0 and int(look(state)) == 1:
                free += action != int(choices[0](state))
            state = step(state, jnp.int32(action))
        assert bool(GAME.is_over(state))
    assert set(seen) == {NOBODY, 0, 1}
    assert free > 0  # others do not always do what the opponent would


def _rules() -> list[Any]:
    return [lambda game, key, state: jnp.argmax(state.chosen), HOSTS["zeillinger"]]


@pytest.mark.parametrize("games_", [1, 7, 8, 512])
def test_places_are_shared_out(games_: int) -> None:
    shares = [0.3, 0.2, 0.5]
    found = seats([Opponent("x", 0, share, First(GAME)) for share in shares], games_)
    assert found.dtype == np.int8
    assert len(found) == games_
    counts = np.bincount(found, minlength=3)
    assert np.abs(counts - np.array(shares) * games_).max() <= 1
    assert (seats([], games_) == NOBODY).all()


def test_what_a_text_says() -> None:
    assert named("agent=first:0.1") == ("agent", "first", 0.1)
    assert named("host=runs/a/models/x-s1:1.0") == ("host", "runs/a/models/x-s1", 1.0)


@pytest.mark.parametrize("text", ["", "first:0.1", "agent=first", "agent=:0.1", "agent=first:2", "agent=a:b:0.5"])
def test_what_says_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="expected ROLE=PLAYER:SHARE, as black=random:0.1"):
        named(text)


@pytest.mark.parametrize(
    ("opponents", "message"),
    [
        (("agent=first:0.6", "host=all:0.6"), "expected shares of at most 1"),
        (("agent=first:0.001",), "expected a share of at least one game in 8"),
    ],
)
def test_shares_that_do_not_go_together(opponents: tuple[str, ...], message: str) -> None:
    ((key, found),) = SelfplaySettings(games=8, opponents=opponents).check_together()
    assert key == "opponents"
    assert message in found


GAME = games.make("hironaka", max_points=3, max_value=5, max_moves=12)


@pytest.mark.slow
def test_fixed_players_and_networks(tmp_path: Path) -> None:
    net = nets.build(nets.spec("mlp1x8"), GAME, nnx.Rngs(1), dtype="float32")
    saving.save(net, tmp_path / "net-s1", GAME)
    texts = ("agent=last:0.25", f"host={tmp_path / 'net-s1'}:0.5")
    agent, host = opponents(SelfplaySettings(opponents=texts), GAME)
    assert (agent.name, agent.player, agent.share) == ("last", 1, 0.25)
    assert (host.name, host.player, host.share) == ("net-s1", 0, 0.5)
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 5))
    look = jax.vmap(GAME.look)(states)
    best = net(look.observation.planes, look.observation.scalars).policy.argmax(1)
    assert (host.rule(host.params, jax.random.key(0), states, jnp.ones(5, bool)) == best).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agent=frist:0.5", '"frist": no agent has that name, expected one of random, first, last, or the path'),
        ("agent=zeillinger:0.5", '"zeillinger": no agent has that name'),
        ("host={folder}:0.5", r"neither a network \(a folder with model.safetensors\) nor a run"),
    ],
)
def test_names_of_nobody(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TengenError, match=message):
        opponents(SelfplaySettings(opponents=(text.format(folder=tmp_path),)), GAME)


def test_players_have_the_names_of_the_game() -> None:
    settings = load("tic_tac_toe", ["selfplay.opponents=[o=first:0.5]"]).selfplay
    assert [opponent.player for opponent in opponents(settings, games.make("tic_tac_toe"))] == [1]
    with pytest.raises(
        TengenError, match=r"selfplay.opponents: agent=first:0.5: tic_tac_toe has no agent, expected x= "
    ):
        load("tic_tac_toe", ["selfplay.opponents=[agent=first:0.5]"])
    with pytest.raises(TengenError, match="tic_tac_toe has no black, only x and o"):
        opponents(SelfplaySettings(opponents=("black=first:0.5",)), games.make("tic_tac_toe"))
