"""`tengen export --format onnx`."""

import json
from pathlib import Path

import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.commands import main
from tengen.errors import TengenError
from tengen.interop import protobuf
from tengen.interop.onnx import exchange
from tests.helpers.custom_nets import TINY
from tests.helpers.networks import untrained


def test_a_file_that_says_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = untrained(tmp_path / "noughts", "tic_tac_toe")
    out = tmp_path / "noughts.onnx"
    assert main(["export", str(net.path), "--format", "onnx", str(out)]) == 0
    said = capsys.readouterr().out
    assert f"noughts -> {out}" in said
    assert "ONNX Runtime gives the same outputs" in said or "onnxruntime is not installed" in said
    model = protobuf.parse(out.read_bytes())
    (metadata,) = model[14]
    key, about = (bytes(value[0]).decode() for value in protobuf.parse(metadata).values())
    assert key == "tengen"
    assert json.loads(about)["game"]["name"] == "tic_tac_toe"
    (graph,) = (protobuf.parse(part) for part in model[7])
    names = {number: [bytes(protobuf.parse(value)[1][0]).decode() for value in graph[number]] for number in (11, 12)}
    assert names == {11: ["planes"], 12: ["policy", "value"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "name", "heads"),
    [
        ("tic_tac_toe", TINY, ("moves_left",)),
        ("go", "b2c8-se4-mish", ("ownership", "score", "moves_left", "opponent_policy")),
        ("go", "b2c16nbt-silu-nogp", ()),
        ("othello", "b3c16-xt4-stem5", ("ownership", "score")),
        ("connect_four", "b1c8", ("moves_left",)),
        ("hex", "b2c8", ("ownership",)),
        ("hironaka", "mlp3x256", ()),
        ("pgx:chess", "b1c8", ()),
        ("pgx:animal_shogi", "b1c8", ()),
    ],
)
def test_every_kind_of_network_and_layout(game: str, name: str, heads: tuple[str, ...]) -> None:
    pytest.importorskip("onnxruntime")
    if game.startswith("pgx"):
        pytest.importorskip("pgx")
    made = games.make(game, **({"size": 7} if game == "go" else {}))
    net = nets.build(nets.spec(name, heads), made, nnx.Rngs(0), dtype="float32")
    data = exchange.to_onnx(net, made, name, {})
    assert "the same outputs" in exchange.check(data, net, made, name)


def test_a_file_that_differs_is_refused() -> None:
    pytest.importorskip("onnxruntime")
    game = games.make("tic_tac_toe")
    one, other = (nets.build(nets.spec("b1c8"), game, nnx.Rngs(seed), dtype="float32") for seed in (0, 1))
    with pytest.raises(TengenError, match="mine: not written, because ONNX Runtime's policy differs by"):
        exchange.check(exchange.to_onnx(one, game, "mine", {}), other, game, "mine")


def test_another_ending_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = untrained(tmp_path / "noughts", "tic_tac_toe")
    assert main(["export", str(net.path), "--format", "onnx", str(tmp_path / "noughts.bin")]) == 2
    assert "noughts.bin: expected a name that ends in .onnx" in capsys.readouterr().err
    assert not np.any([path.suffix == ".bin" for path in tmp_path.iterdir()])
