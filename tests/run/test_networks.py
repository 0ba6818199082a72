"""The folder of networks."""

from pathlib import Path

import jax
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.errors import TengenError
from tengen.run.networks import RunNetworks, SavedNetwork

GAME = games.make("tic_tac_toe")
SPEC = nets.spec("b1c8")


def net(seed: int = 0, name: str = "b1c8") -> nets.Network:
    return nets.build(nets.spec(name), GAME, nnx.Rngs(seed), dtype="float32")


def opened(folder: Path) -> RunNetworks:
    return RunNetworks(folder, GAME, SPEC, "float32")


def test_none_yet(tmp_path: Path) -> None:
    networks = opened(tmp_path / "models")
    assert (networks.saved, networks.newest, networks.notes) == ([], None, ())


def test_they_are_found_again_in_the_order_of_saving(tmp_path: Path) -> None:
    networks = opened(tmp_path)
    for step in (100, 20):
        networks.save(net(step), f"s{step}", step, {"seconds": step / 10})
    networks.save(net(20), "s20", 20, {"seconds": 3.0})  # the same name again is the same network
    again = opened(tmp_path)
    assert networks.saved == again.saved == [SavedNetwork(3.0, 20, "s20"), SavedNetwork(10.0, 100, "s100")]
    assert again.newest.name == "s100"
    expected = nnx.state(nets.fold(net(100)))
    jax.tree.map(np.testing.assert_array_equal, again.parameters("s100"), expected)
    assert jax.tree.structure(again.parameters("s100")) == jax.tree.structure(expected)


def test_what_is_no_network_is_passed_over_and_named(tmp_path: Path) -> None:
    networks = opened(tmp_path)
    networks.save(net(), "good", 1, {"seconds": 1.0})
    networks.save(net(), "timeless", 2, {"seconds": float(2**60)})
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "cut").mkdir()
    data = (tmp_path / "good" / "model.safetensors").read_bytes()
    (tmp_path / "cut" / "model.safetensors").write_bytes(data[:100])
    again = opened(tmp_path)
    assert [saved.name for saved in again.saved] == ["good", "timeless"]
    assert len(again.notes) == 2
    assert all(str(tmp_path / name) in note for name, note in zip(("cut", "empty"), again.notes, strict=True))


def test_networks_that_cannot_play(tmp_path: Path) -> None:
    networks = opened(tmp_path)
    networks.save(net(name="b2c8"), "other", 1, {"seconds": 1.0})
    with pytest.raises(TengenError, match="another network than expected"):
        networks.parameters("other")
    with pytest.raises(TengenError, match="there is no such file"):
        networks.parameters("gone")


def test_the_newest_that_is_not_finite_is_passed_over_and_named(tmp_path: Path) -> None:
    networks = opened(tmp_path)
    for step in (1, 2):
        networks.save(net(step), f"s{step}", step, {"seconds": float(step)})
    file = tmp_path / "s2" / "model.safetensors"
    data = file.read_bytes()
    file.write_bytes(data[:-4] + np.float32(np.nan).tobytes())
    again = opened(tmp_path)
    assert [saved.name for saved in again.saved] == ["s1"]
    (note,) = again.notes
    assert note.startswith(f"passed over, it cannot play: {file}: ")
    assert "holds numbers that are not finite" in note
