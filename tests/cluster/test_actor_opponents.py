"""Networks that play in self-play reach nodes that do not have their files."""

from pathlib import Path

import pytest

from tengen.cluster.actor import place_opponents, read_opponents
from tengen.config.settings.selfplay import named
from tengen.errors import OptionError
from tengen.run import networks
from tests.helpers.tiny_runs import tiny


def test_networks_are_sent_and_fixed_players_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "there"
    there.mkdir()
    monkeypatch.chdir(there)
    (there / "rival.safetensors").write_bytes(networks.find("connect_four").path.read_bytes())
    config = tiny('selfplay.opponents=["x=random:0.25", "o=rival.safetensors:.5"]')
    sent = read_opponents(config, config.game.make())
    assert [network.name for network in sent.values()] == ["rival"]
    (there / "rival.safetensors").unlink()
    placed = place_opponents(config, sent, tmp_path / "node")
    fixed, rival = map(named, placed.selfplay.opponents)
    assert fixed == ("x", "random", 0.25)
    assert (rival.role, rival.share) == ("o", 0.5)
    assert networks.find(rival.name).name == "rival"
    assert place_opponents(config, {}, tmp_path) == config


def test_a_network_that_is_not_there_is_an_error_at_the_start(tmp_path: Path) -> None:
    config = tiny(f"selfplay.opponents=[x={tmp_path}/none:0.5]")
    with pytest.raises(OptionError, match="no x has that name"):
        read_opponents(config, config.game.make())
