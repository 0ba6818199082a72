"""What the loop is made of, without the loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import config
from tengen.ahead import Ahead
from tengen.data.format.rows import blank
from tengen.data.store import buffer
from tengen.errors import OptionError
from tengen.gpu import program
from tengen.loop import components
from tengen.loop.components import Components
from tests.helpers.tiny_runs import tiny


@pytest.fixture(scope="module")
def made() -> Components:
    return Components(tiny())


def test_rows_from_the_host_come_in_order(made: Components) -> None:
    count = made.selfplay.rows_room + 7  # more than one block
    old = blank(made.form, count)
    old["ply"] = np.arange(count, dtype=np.int16)
    loaded = made.load(made.make_buffer(), old, count)
    assert buffer.total(loaded) == count
    kept = buffer.newest(loaded, count)["ply"]
    np.testing.assert_array_equal(kept, old["ply"][-made.capacity :])


def test_memory_is_that_of_the_arrays(made: Components, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = made.memory()
    rows = jax.tree.leaves(made.make_buffer().rows)
    assert memory["rows"] == sum(leaf.nbytes for leaf in rows)
    made.check_memory()
    monkeypatch.setattr(components, "device_memory", lambda: int(sum(memory.values()) / 0.9) + 1)
    made.check_memory()
    monkeypatch.setattr(components, "device_memory", lambda: sum(memory.values()))
    with pytest.raises(OptionError, match="lower selfplay.games, search.simulations or data.ring_rows"):
        made.check_memory()


def test_weights_are_those_of_the_network_folded(made: Components) -> None:
    observation = made.game.observe(made.game.init(jax.random.key(0)))
    batch = jax.tree.map(lambda leaf: leaf[None], observation)
    said = made.evaluate(made.weights(), batch)
    outputs = made.trainer.network()(batch.planes, batch.scalars)
    np.testing.assert_allclose(said.logits, outputs.policy, atol=1e-4)
    chances = jax.nn.softmax(outputs.value)
    np.testing.assert_allclose(said.value, jnp.asarray(chances[:, 0] - chances[:, 2]), atol=1e-4)


def test_weights_share_no_array_with_the_trainer() -> None:
    """The next step of learning donates the trainer's arrays, and folding leaves those of dense layers as they are."""
    made = Components(config.load("hironaka", ["net.dtype=float32", "selfplay.games=4"]))
    kept = {leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(made.trainer.state)}
    assert not kept & {leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(made.weights())}


def test_programs_compiled_ahead_give_the_same(made: Components) -> None:
    with Ahead() as ahead:
        other = Components(tiny(), ahead)
        jax.tree.map(np.testing.assert_array_equal, other.weights(), made.weights())
        assert buffer.total(other.make_buffer()) == 0


def test_self_play_that_does_not_fit_is_refused_each_time(made: Components, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "device_memory", lambda: 1)
    for _ in range(2):
        with pytest.raises(OptionError, match="`tengen set` a lower search.simulations"):
            made.change(tiny("search.simulations=40"))
    assert made.config == tiny()


def test_rows_for_katago_keep_their_format_while_games_go_on() -> None:
    go = ("game.size=3", "game.observation=katago", "net.heads=[score]", "net.growth=[]", "data.format=katago")
    go += ("selfplay.value_horizon=0", "selfplay.games=8")
    made = Components(config.load("go5", [*go, "search.score_weight=0"]))
    playing = made.playing
    with pytest.raises(OptionError, match="search.score_weight above 0: stop the run"):
        made.change(config.load("go5", [*go, "search.score_weight=0.4"]))
    assert made.playing is playing
    assert made.change(config.load("go5", [*go, "search.score_weight=0", "search.simulations=20"]))


def test_programs_for_gpus_need_one(made: Components, monkeypatch: pytest.MonkeyPatch) -> None:
    playing = made.playing
    monkeypatch.setattr(program, "_emulator", None)
    with pytest.raises(OptionError, match="search.kernels: expected auto or plain, because there is no GPU here"):
        made.change(tiny("search.kernels=gpu"))
    assert made.playing is playing
