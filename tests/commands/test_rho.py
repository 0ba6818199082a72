"""`tengen rho`."""

import json
from pathlib import Path

import pytest
from flax import nnx

from tengen import games, nets
from tengen.commands import main
from tengen.nets import saving

SMALL = ["--games", "60", "--points", "3", "--max-value", "5", "--moves", "6"]


@pytest.mark.slow
def test_a_table_of_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rho", "zeillinger", "all", "--agents", "first", "last", *SMALL]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "games / rounds, 60 games a pair, at most 6 rounds; 95 % errors"
    assert out[1].split() == ["host", "first", "last"]
    assert [line.split()[0] for line in out[2:]] == ["zeillinger", "all"]
    rates = [float(line.split()[1]) for line in out[2:]]
    assert 1 / 6 <= rates[1] < rates[0] <= 1
    assert main(["rho", "zeillinger", "all", "--agents", "first", "last", *SMALL, "--json"]) == 0
    pairs = json.loads(capsys.readouterr().out)
    assert [round(pair["rate"], 4) for pair in pairs if pair["agent"] == "first"] == rates
    assert all(pair["games"] == 60 and pair["rate"] == 60 / pair["rounds"] for pair in pairs)


def test_without_arguments_all_fixed_players_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is played, without playing it: the shipped setting takes a minute."""
    from tengen.match import hironaka

    asked = []

    def table(game, hosts, agents, count, seed):
        asked.append((game.options, [host.name for host in hosts], [agent.name for agent in agents], count, seed))
        return iter(())

    monkeypatch.setattr(hironaka, "table", table)
    assert main(["rho", "--json"]) == 0
    ((options, hosts, agents, count, seed),) = asked
    assert (options.dimension, options.max_points, options.max_value, options.max_moves) == (3, 5, 20, 80)
    assert hosts == ["random", "all", "zeillinger", "spivakovsky"]
    assert agents == ["random", "first", "last"]
    assert (count, seed) == (5000, 0)


@pytest.mark.slow
def test_the_best_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    game = games.make("hironaka", max_points=3, max_value=5, max_moves=12)
    net = nets.build(nets.spec("mlp1x8"), game, nnx.Rngs(0), dtype="float32")
    saving.save(net, tmp_path / "models" / "net-s1", game, {"seconds": 1.0, "step": 1})
    assert main(["rho", str(tmp_path), "--select", *SMALL]) == 0
    out = capsys.readouterr().out
    assert f"best host: {tmp_path / 'models' / 'net-s1'}\n" in out
    assert f"best agent: {tmp_path / 'models' / 'net-s1'}\n" in out
    assert out.splitlines()[-2].startswith("net-s1 ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["zelinger"], '"zelinger": no host has that name'),
        (["--agents", "zeillinger"], '"zeillinger": no agent has that name'),
        (["--select"], "rho: --select needs one run"),
        (["--dimension", "11"], "dimension"),
        (["all", "--select", "--agents", "first"], "rho: --select needs one run"),
        (["nowhere", "--select"], "nowhere: no networks to choose from"),
    ],
)
def test_what_cannot_be_measured(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["rho", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("argument", ["--games=1", "--games=many", "--moves=0", "--simulations=-1", "--points=²"])
def test_numbers_that_are_none(capsys: pytest.CaptureFixture[str], argument: str) -> None:
    assert main(["rho", argument]) == 2
    assert "expected a whole number from" in capsys.readouterr().err
