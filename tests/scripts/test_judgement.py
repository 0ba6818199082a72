"""What networks think of recorded games, by plies."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from benchmarks import judgement
from tengen import games, nets
from tengen.data.records.records import Record
from tengen.errors import TengenError
from tengen.nets import saving

GAME = games.make("tic_tac_toe")
WON = Record.of(GAME, [0, 3, 1, 4, 2], players=("a", "b"), result=1.0, opening=1)  # the top row
LOST = Record.of(GAME, [0, 3, 1, 4, 8, 5], players=("b", "a"), result=-1.0)  # the middle row
DRAWN = Record.of(GAME, [0, 1, 2, 4, 3, 5, 7, 6, 8], players=("a", "b"), result=0.0)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    net = nets.build(nets.spec("b1c8", ()), GAME, nnx.Rngs(0), dtype="float32")
    return saving.save(net, tmp_path_factory.mktemp("net"), GAME)


def test_it_is_what_the_network_says_of_each_position(path: Path) -> None:
    judged = judgement.judge(judgement.usable([WON, LOST, DRAWN]), path)
    assert judged.ply.tolist() == [1, 2, 3, 4, 0, 1, 2, 3, 4, 5], "no opening, no drawn game"
    assert judged.player.tolist() == list("bababababa")
    net, place = saving.load(path, dtype="float32"), 0
    for record in (WON, LOST):
        state = GAME.init(jax.random.key(0))
        for ply, action in enumerate(record.actions):
            if ply >= record.opening:
                seen = GAME.observe(state)
                outputs = net(seen.planes[None], seen.scalars[None])
                chances = jax.nn.softmax(outputs.value[0])
                won = float((ply % 2 == 0) == (record.result == 1.0))
                error = (chances[0] + chances[1] / 2 - won) ** 2
                legal = jnp.where(GAME.legal_actions(state), outputs.policy[0], -jnp.inf)
                np.testing.assert_allclose(judged.error[place], error, atol=0.02)  # it computes in bfloat16
                np.testing.assert_allclose(judged.surprise[place], -jax.nn.log_softmax(legal)[action], atol=0.05)
                place += 1
            state = GAME.step(state, jnp.int32(action))


def test_the_table_has_a_line_for_each_range_and_network(path: Path) -> None:
    judged = judgement.judge(judgement.usable([WON, LOST]), path)
    lines = list(judgement.table({"one": judged, "two": judged}, (0, 3, 50)))
    assert [line.split(" | ")[:3] for line in lines[1:]] == [
        *(["0 to 2", "5", name] for name in ("one", "two")),
        *(["3 to 49", "5", name] for name in ("one", "two")),
    ]
    early = judged.ply < 3
    assert lines[1].split(" | ")[3] == f"{judged.error[early].mean():.4f}"
    assert lines[1].split(" | ")[4] == f"{judged.surprise[early & (judged.player == 'a')].mean():.3f}"


def test_games_without_a_winner_teach_nothing() -> None:
    with pytest.raises(TengenError, match="no game with a winner"):
        judgement.usable([DRAWN])
