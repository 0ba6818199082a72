from pathlib import Path

import pytest
from flax import nnx

from tengen import games, nets
from tengen.errors import TengenError
from tengen.nets import saving
from tengen.run import finding, registry


@pytest.fixture(scope="module")
def net() -> tuple[nets.Network, games.Game]:
    game = games.make("tic_tac_toe")
    return nets.build(nets.spec("b1c8"), game, nnx.Rngs(0)), game


def _save(net: tuple[nets.Network, games.Game], path: Path, seconds: float) -> Path:
    saving.save(net[0], path, net[1], {"seconds": seconds, "step": int(seconds)})
    return path


def test_a_folder_and_its_file_are_the_same_network(net: tuple[nets.Network, games.Game], tmp_path: Path) -> None:
    folder = _save(net, tmp_path / "mine", 1)
    for path in (folder, folder / "model.safetensors"):
        found = finding.find(path)
        assert (found.name, found.saved.game) == ("mine", "tic_tac_toe")


def test_of_a_run_the_newest_is_meant(net: tuple[nets.Network, games.Game], tmp_path: Path) -> None:
    for name, seconds in (("a-s9", 5.0), ("b-s10", 50.0), ("c-s11", 20.0)):
        _save(net, tmp_path / "models" / name, seconds)
    (tmp_path / "models" / "broken").mkdir()
    (tmp_path / "models" / "broken" / "model.safetensors").write_bytes(b"no network")
    assert finding.find(tmp_path).name == "b-s10"
    assert [found.name for found in finding.networks(tmp_path)] == ["a-s9", "c-s11", "b-s10"]


def test_of_a_ring_the_last_accepted_is_meant(net: tuple[nets.Network, games.Game], tmp_path: Path) -> None:
    for number, samples in ((2, 100), (1, 900)):
        folder = _save(net, tmp_path / "models" / registry.name_of("r", "main", samples, 5), float(samples))
        registry.decide(registry.Entry(folder, "main", samples, 5), {"accepted": True, "number": number})
    assert finding.find(tmp_path).name == "r-main-s100-d5"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "here: there is no such file or folder"),
        (lambda path: path.mkdir(), "neither a network"),
        (lambda path: (path.mkdir(), (path / "config.yaml").touch()), "without a network so far"),
        (lambda path: path.write_bytes(b"?"), "here: not a network, whose file ends in .safetensors"),
    ],
)
def test_what_is_no_network_is_named(make, words: str, tmp_path: Path) -> None:
    make(tmp_path / "here")
    with pytest.raises(TengenError, match=words) as caught:
        finding.find(tmp_path / "here")
    assert "here" in str(caught.value)
