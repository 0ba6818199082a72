"""Lc0's networks with encoder layers in Tengen and back: the numbers are those of a slow version of its layers."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.commands import main
from tengen.errors import TengenError
from tengen.games import chess_lc0
from tengen.interop.lc0 import weights_file
from tengen.interop.lc0.network import from_lc0, to_lc0
from tests.interop.lc0.test_network import form, positions
from tests.oracles import lc0_encoders as oracle

KINDS: dict[str, dict[str, Any]] = {
    "dense embedding": {},
    "the map, squared relu, no gates": {"new": False, "ffn_activation": 8, "gates": False},
    "no smolgen, no moves left": {"smolgen": False, "left": False},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_numbers_in_both_directions(kind: str, tmp_path: Path) -> None:
    given = oracle.network(1, **KINDS[kind])
    weights_file.write(given, tmp_path / "theirs.pb", "float32")
    net = from_lc0(weights_file.read(tmp_path / "theirs.pb"), games.make("chess"))
    seen = positions(2)
    found = nets.fold(net, kernels=False)(seen.planes, seen.scalars)
    weights_file.write(to_lc0(net, "net"), tmp_path / "mine.pb", "float32")
    mine = weights_file.read(tmp_path / "mine.pb")
    for layers in (given, mine):
        for number, planes in enumerate(chess_lc0.inputs(seen)):
            expected = oracle.evaluate(layers, planes)
            np.testing.assert_allclose(found.policy[number], expected["policy"], atol=1e-3)
            np.testing.assert_allclose(jax.nn.softmax(found.value[number]), expected["wdl"], atol=1e-4)
            if found.moves_left is not None:
                np.testing.assert_allclose(found.moves_left[number], expected["moves_left"][0], rtol=1e-4)
    assert (found.moves_left is None) == ("no moves left" in kind)
    assert mine["weights"].keys() == given["weights"].keys()


def test_what_is_left_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = oracle.network(0)
    heads = given["weights"]["policy_heads"]
    heads |= {"soft": heads["vanilla"], "ip_pol_w": heads["vanilla"].pop("ip_pol_w")}  # a layer that heads share
    weights_file.write(given, tmp_path / "theirs.pb")
    assert main(["import", "lc0", str(tmp_path / "theirs.pb"), str(tmp_path / "net")]) == 0
    words = "theirs.pb: 2 encoder layers of 8 channels and 2 heads, smolgen, moves left, without its heads soft"
    assert words in capsys.readouterr().out
    assert main(["export", str(tmp_path / "net"), "--format", "lc0", str(tmp_path / "mine.pb.gz")]) == 0
    assert weights_file.read(tmp_path / "mine.pb.gz")["min_version"]["minor"] == 31


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda net: net["weights"].pop("policy_heads"), "its policy_heads.vanilla is missing"),
        (lambda net: net["weights"]["value_heads"].pop("winner"), "its value_heads.winner is missing"),
        (lambda net: net["weights"].pop("headcount"), "its headcount is missing"),
        (lambda net: net["weights"].update(headcount=4), "heads: expected a divisor of the width 6, got 4"),
        (lambda net: form(net).update(input_embedding=0), "its embedding has the number 0 in Lc0"),
        (lambda net: form(net).update(ffn_activation=5), "its ffn_activation has the number 5"),
        (lambda net: form(net).update(policy=2), "its policy head is of the kind convolution, expected attention"),
        (lambda net: net["weights"]["encoder"][0]["mha"].update(rpe_q=b""), r"relative positions \(rpe\)"),
        (lambda net: net["weights"]["policy_heads"]["vanilla"].update(pol_encoder=[b""]), "has encoder layers"),
        (lambda net: net["weights"]["encoder"][1]["mha"].pop("k_w"), "its encoder.1.mha k_w has 0 numbers"),
        (lambda net: net["weights"]["encoder"][1].pop("ln2_gammas"), r"its encoder.1 ln2_gammas has the shape \[0\]"),
        (lambda net: net["weights"]["encoder"][1]["mha"].update(rpe_k=b""), r"relative positions \(rpe\)"),
        (lambda net: net["weights"]["encoder"][1]["mha"].pop("smolgen"), "some of its encoder layers have smolgen"),
        (lambda net: net["weights"]["value_heads"]["winner"].pop("ip2_val_w"), "its ip2_val_w is missing"),
        (
            lambda net: net["weights"]["value_heads"]["winner"].update(ip2_val_b=np.zeros(0)),
            "has 0 numbers, expected 1",
        ),
        (
            lambda net: net["weights"]["encoder"][0]["mha"]["smolgen"].update(dense1_b=np.zeros(60000)),
            "its sizes do not fit together: ",
        ),
        (lambda net: net["weights"].update(ip_add_gate=np.zeros(5)), "its ip_add_gate has 5 numbers, expected 512"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(spoil: Any, message: str) -> None:
    net = oracle.network(0)
    spoil(net)
    with pytest.raises(TengenError, match=message):
        from_lc0(net, games.make("chess"))


def test_names() -> None:
    spec = nets.spec("b2c8-lc0enc2-mish", ("moves_left",))
    assert nets.name_of(spec) == "b2c8-lc0enc2-mish"
    assert nets.Spec.from_dict(spec.to_dict()) == spec
    game = games.make("chess")
    per_square = 2 * (4 * 8 * 8 + 2 * 8 * 12 + 8) + (116 * 8 + 2 * 8 * 12) + (3 * 8 * 8) + 8 * 32 + 8 * 8
    heads = 64 * 32 * 128 + 128 * 3 + 64 * 8 * 128 + 128
    once = 64 * 12 * 64 * 4 + 2 * (64 * 8 + 8 * 16) + 4 * 8 * 4096 + 8 * 4 + heads
    assert nets.operations(spec, game) == 2 * (64 * per_square + once)
    with pytest.raises(TengenError, match="Lc0 has no activation silu, expected relu or mish"):
        to_lc0(nets.build(nets.spec("b1c8-lc0enc1-silu"), game, nnx.Rngs(0)), "mine")
    for name in ("b2c8-lc0enc3", "b2c8-se-lc0enc2", "b2c8nbt-lc0enc2", "mlp2x8-lc0enc2"):
        with pytest.raises(TengenError, match="encoder layers of Lc0 have a name like b10c256-lc0enc8"):
            nets.spec(name)
