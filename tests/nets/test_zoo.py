"""Names say what a network is made of."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen import nets
from tengen.errors import OptionError


def test_b18c384nbt_has_katagos_numbers() -> None:
    tower = nets.spec("b18c384nbt").tower
    assert tower is not None
    assert (tower.kind, tower.blocks, tower.channels, tower.mid_channels, tower.inner_blocks) == (
        "nested", 18, 384, 192, 2,
    )  # fmt: skip
    assert (tower.pool_blocks, tower.pool_channels) == ((3, 6, 9, 12, 15), 64)
    assert (tower.policy_channels, tower.value_channels, tower.value_width) == (48, 96, 128)


@pytest.mark.parametrize(
    ("name", "pool_blocks", "pool_channels", "heads"),
    [
        ("b6c96", (3, 5), 32, (32, 32, 64)),
        ("b10c128", (5, 8), 32, (32, 32, 80)),
        ("b15c192", (7, 12), 64, (32, 32, 96)),
        ("b20c256", (7, 12, 17), 64, (48, 48, 112)),
    ],
)
def test_residual_ones_have_katagos_numbers(
    name: str, pool_blocks: tuple[int, ...], pool_channels: int, heads: tuple[int, ...]
) -> None:
    tower = nets.spec(name).tower
    assert tower is not None
    assert (tower.pool_blocks, tower.pool_channels) == (pool_blocks, pool_channels)
    assert (tower.policy_channels, tower.value_channels, tower.value_width) == heads
    assert (tower.kind, tower.mid_channels, tower.groups, tower.excite_ratio) == ("residual", tower.channels, 1, None)


def test_endings() -> None:
    spec = nets.spec("b8c64-mish-xt8-se4-nogp-stem5", ("score",))
    assert spec.tower is not None
    assert (spec.activation, spec.heads) == ("mish", ("score",))
    assert (spec.tower.groups, spec.tower.excite_ratio, spec.tower.pool_blocks) == (8, 4, ())
    assert nets.name_of(spec) == "b8c64-nogp-xt8-se4-stem5-mish"
    assert nets.spec("mlp2x64-silu").activation == "silu"


@given(
    st.integers(1, 40),
    st.integers(4, 400),
    st.booleans(),
    st.sampled_from(["", "-se", "-se2"]),
    st.sampled_from(["", "-nogp"]),
    st.sampled_from(["", "-mish", "-silu"]),
)
def test_every_size_makes_a_network_that_knows_its_name(
    blocks: int, channels: int, nested: bool, excite: str, pool: str, activation: str
) -> None:
    name = f"b{blocks}c{channels}{'nbt' if nested else ''}{pool}{'' if channels < 8 else excite}{activation}"
    spec = nets.spec(name)
    assert nets.name_of(spec) == name
    assert spec.tower is not None
    assert all(1 <= number <= blocks for number in spec.tower.pool_blocks)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet", '"resnet": no network has that name, expected one like b6c96 (blocks, channels), b18c384nbt'),
        ("b6", '"b6": no network has that name'),
        ("b0c96", '"b0c96": no network has that name'),
        ("", '"": no network has that name'),
        ("b6c96-", '"b6c96-": unknown ending "-", expected one of -nogp, -xtN, -se, -stemN, -mish, -silu'),
        ("b6c96-relu", '"b6c96-relu": unknown ending "-relu", expected one of -nogp, -xtN, -se, -stemN, -mish, -silu'),
        ("b6c96-mish-silu", '"b6c96-mish-silu": two endings set activation'),
        ("b6c96-xt5", '"b6c96-xt5": tower.groups: expected a divisor of the 96 channels inside a block, got 5'),
        ("mlp3x256-se", '"mlp3x256-se": -se is for networks on a board, such as b6c96-se'),
        ("b999c96", '"b999c96": tower.blocks: expected a whole number from 1 to 200, got 999'),
    ],
)
def test_bad_names(name: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        nets.spec(name)
    assert str(caught.value).startswith(message)


def test_names_need_neither_jax_nor_flax() -> None:
    code = "import sys; from tengen import nets; nets.spec('b6c96'); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
