"""`tengen export --format katago` and `tengen import katago`, from file to file."""

import dataclasses
import itertools
import os
import shlex
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import config, games, nets
from tengen.commands import main
from tengen.interop.katago import exchange, model_file
from tengen.nets import growing, saving
from tengen.nets.network import BoardNetwork
from tests.oracles import katago_network as oracle


def go_network(
    folder: Path, name: str = "b1c8", heads: tuple[nets.Head, ...] = ("score",), draws: bool = False
) -> Path:
    game = games.make("go", size=5)
    net = nets.build(nets.spec(name, heads), game, nnx.Rngs(0), dtype="float32")
    if draws:
        assert isinstance(net, BoardNetwork)
        net.heads.value.summary.value.bias = nnx.Param(jnp.zeros(3))
    saving.save(net, folder, game)
    return folder


@pytest.mark.slow
def test_out_in_and_the_same_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = go_network(tmp_path / "mine")
    assert main(["export", str(net), "--format", "katago", str(tmp_path / "mine.bin.gz")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("mine -> ")
    assert "note" not in out
    assert main(["import", "katago", str(tmp_path / "mine.bin.gz"), str(tmp_path / "back"), "--size", "5"]) == 0
    assert (
        "mine: version 8, 1 blocks of 8 channels, for go (size 5, komi 7.0, ko positional)" in capsys.readouterr().out
    )

    found = []
    for folder, observation in ((net, "tengen"), (tmp_path / "back", "katago")):
        game = games.make("go", size=5, observation=observation)
        state = game.init(jax.random.key(0))
        for move in (12, 7, 11):
            state = game.step(state, jnp.int32(move))
        seen = jax.tree.map(lambda x: x[None], game.observe(state))
        outputs = saving.load(folder, game, dtype="float32")(seen.planes, seen.scalars)
        found.append((outputs.policy, jax.nn.softmax(outputs.value), outputs.score))
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-4), *found)


def test_areas_that_a_network_expects_otherwise_are_told(tmp_path: Path) -> None:
    model = dataclasses.replace(oracle.random_model(15), areas_by_suicide=True)
    model_file.write(model, tmp_path / "net.bin")
    again = model_file.read(tmp_path / "net.bin")
    assert again.areas_by_suicide
    for suicide in (True, False):
        game = games.make("go", size=5, suicide=suicide, observation="katago")
        assert ("as if suicide were allowed" in exchange.describe(again, game)) != suicide


@pytest.mark.slow
def test_the_command_for_going_on_has_the_architecture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for version, options in ((8, {}), (17, {"attention": "learned", "tip": "board"})):
        model_file.write(oracle.random_model(version, **options), tmp_path / "net.bin")
        net = str(tmp_path / f"net{version}")
        assert main(["import", "katago", str(tmp_path / "net.bin"), net, "--size", "5"]) == 0
        line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("go on:"))
        words = shlex.split(line.removeprefix("go on:"))
        assert words[:3] == ["tengen", "run", "go19"]
        given = [value for word, value in itertools.pairwise(words) if word == "--set"]
        loaded = config.load("go19", given)
        assert growing.unfit(saving.read(net).spec, loaded.net.architecture()) == ""
        assert loaded.net.start_from == net


def test_what_katago_does_not_know_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = go_network(tmp_path / "drawish", "b1c8-mish", heads=(), draws=True)
    assert main(["export", str(net), "--format", "katago", str(tmp_path / "net.bin")]) == 0
    out = capsys.readouterr().out
    assert "note: the network expects draws (up to " in out
    assert "note: the network has no score head" in out
    assert "note: its short-term errors are constant" in out
    assert model_file.read(tmp_path / "net.bin").version == 11


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "{net}", "--format", "katago", "{tmp}/net.onnx"], "net.onnx: expected a name that ends in .bin.gz"),
        (
            ["export", "{net}", "--format", "katgo", "{tmp}/net.bin"],
            "unknown format, did you mean katago",
        ),
        (["export", "{net}", "--format", "katago", "{tmp}/x/net.bin"], "x/net.bin: there is no folder"),
        (["export", "{tmp}/nothing", "--format", "katago", "{tmp}/net.bin"], "there is no such file or folder"),
        (["import", "katago", "{tmp}/nothing.bin.gz", "{tmp}/in"], "nothing.bin.gz"),
        (["import", "katago", "{tmp}/fifo.bin.gz", "{tmp}/in"], "fifo.bin.gz"),
        (["import", "katago", "{net}/model.safetensors", "{tmp}/in"], "model.safetensors: byte "),
        (["import", "katago", "{tmp}/good.bin", "{tmp}/in", "--size", "99"], "size: expected"),
        (["import", "katago", "{tmp}/odd.bin", "{tmp}/in"], "odd.bin: odd: its layers have several activations"),
    ],
)
def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    net = go_network(tmp_path / "mine") if any("{net}" in part for part in arguments) else None
    os.mkfifo(tmp_path / "fifo.bin.gz")
    model_file.write(oracle.random_model(8), tmp_path / "good.bin")
    odd = oracle.random_model(11, activation="mish")
    model_file.write(oracle.renamed(odd, "odd", tip_activation="silu"), tmp_path / "odd.bin")
    before = sorted(tmp_path.iterdir())
    assert main([part.format(net=net, tmp=tmp_path) for part in arguments]) == 2
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_there_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "model.safetensors").write_text("precious")
    for folder, complaint in (("run", "is the folder of a run"), ("net", "model.safetensors: is a network already")):
        assert main(["import", "katago", str(tmp_path / "any.bin"), str(tmp_path / folder)]) == 2
        assert complaint in capsys.readouterr().err
    assert (tmp_path / "net" / "model.safetensors").read_text() == "precious"
