"""A spec survives being stored, and says what is wrong with itself."""

import json
from typing import Any

import pytest

from tengen import nets
from tengen.errors import OptionError


@pytest.mark.parametrize("name", [*nets.names(), "b3c32-nogp-xt4-se-mish", "b2c16nbt-silu", "mlp1x8-mish"])
def test_dictionaries_and_json_keep_everything(name: str) -> None:
    spec = nets.spec(name, ("moves_left", "opponent_policy"))
    plain = spec.to_dict()
    stored = json.loads(json.dumps(plain))
    assert stored == plain
    assert nets.Spec.from_dict(stored) == spec


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"blocks": 0}, "tower.blocks: expected a whole number from 1 to 200, got 0"),
        ({"kind": "post"}, 'tower.kind: expected one of residual, nested, got "post"'),
        ({"inner_blocks": 2}, "tower.inner_blocks: expected 0 in residual blocks, got 2"),
        ({"kind": "nested"}, "tower.inner_blocks: expected at least 1 in nested blocks, got 0"),
        ({"groups": 5}, "tower.groups: expected a divisor of the 96 channels inside a block, got 5"),
        ({"pool_blocks": [5, 3]}, "tower.pool_blocks: expected rising numbers from 1 to 6, got 5, 3"),
        ({"pool_blocks": [7]}, "tower.pool_blocks: expected rising numbers from 1 to 6, got 7"),
        ({"pool_channels": 96}, "tower.pool_channels: expected fewer than the 96 in a block, got 96"),
        ({"excite_ratio": 97}, "tower.excite_ratio: expected at most the 96 channels, got 97"),
        ({"width": 1}, "tower.width: unknown key"),
    ],
)
def test_bad_towers(changes: dict[str, Any], message: str) -> None:
    plain = nets.spec("b6c96").to_dict()
    plain["tower"].update(changes)
    with pytest.raises(OptionError) as caught:
        nets.Spec.from_dict(plain)
    assert message in str(caught.value)


def test_other_bad_specs() -> None:
    plain = nets.spec("b6c96").to_dict()
    for changes, message in (
        ({"layers": {"count": 1, "width": 1}}, "tower: expected either a tower or layers, the other null"),
        ({"tower": None}, "tower: expected either a tower or layers, the other null"),
        ({"heads": ["score", "score"]}, "heads: expected each head once, got score, score"),
        ({"heads": ["Komi!"]}, "heads[0]: expected the name of a head"),
        ({"activation": "tanh"}, 'activation: expected one of relu, mish, silu, got "tanh"'),
    ):
        with pytest.raises(OptionError) as caught:
            nets.Spec.from_dict({**plain, **changes})
        assert message in str(caught.value)
