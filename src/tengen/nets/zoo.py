"""Names of networks: `b6c96` has 6 blocks of 96 channels, `b18c384nbt` nested ones, `mlp3x256` has dense layers.

Endings change the tower, in any order: `b6c96-se-mish`. A network of your own is named `package.module:function`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tengen import importing
from tengen.errors import OptionError
from tengen.nets.specs import Head, Spec
from tengen.schema import quote

ENDINGS = {
    "-nogp": "no block pools over the whole board",
    "-xtN": "ResNeXt: the 3x3 convolution has N groups, between two 1x1 convolutions",
    "-se": "squeeze-and-excitation in every block, one hidden unit per 8 channels (-seN: per N)",
    "-stemN": "the first convolution is N x N instead of 3 x 3",
    "-mish": "activation mish instead of relu",
    "-silu": "activation silu instead of relu",
    "-lc0": "blocks and heads of Lc0, for chess; its policy by convolution (-lc0att: attention, -lc0dense: dense)",
    "-lc0encN": "encoder layers of Lc0 (a transformer) with N heads in place of blocks, and its heads, for chess",
}
_TOWER = re.compile(r"b([1-9]\d{0,2})c([1-9]\d{0,3})(nbt)?")
_LAYERS = re.compile(r"mlp([1-9]\d{0,2})x([1-9]\d{0,4})")
_ENDING = re.compile(
    r"(?P<pool_blocks>nogp)|xt(?P<groups>[1-9]\d{0,3})|se(?P<excite_ratio>([1-9]\d{0,3})?)|"
    r"stem(?P<stem_side>[1579])|(?P<activation>mish|silu)|lc0enc(?P<encoders>[1-9]\d{0,2})|lc0(?P<lc0>(att|dense)?)"
)
_LC0_POLICIES = {"": "convolution", "att": "attention", "dense": "dense"}
_LC0_HEADS = {"value_channels": 32, "value_width": 128, "moves_channels": 8, "moves_width": 128}
_USUAL_RATIO = 8
_USUAL_STEM = 3


class _Size(NamedTuple):
    pool_blocks: tuple[int, ...]
    pool_channels: int
    policy_channels: int
    value_channels: int
    value_width: int


_KATAGO = {
    "b2c16": _Size((2,), 8, 8, 8, 12),
    "b4c32": _Size((3,), 16, 12, 12, 24),
    "b6c96": _Size((3, 5), 32, 32, 32, 64),
    "b10c128": _Size((5, 8), 32, 32, 32, 80),
    "b15c192": _Size((7, 12), 64, 32, 32, 96),
    "b20c256": _Size((7, 12, 17), 64, 48, 48, 112),
    "b18c384nbt": _Size((3, 6, 9, 12, 15), 64, 48, 96, 128),
}


def names() -> tuple[str, ...]:
    """The networks that `tengen nets` lists; `spec` accepts many more."""
    return (*_KATAGO, "mlp3x256")


def spec(name: str, heads: Iterable[Head] = (), options: Mapping[str, Any] | None = None) -> Spec:
    """The network with that name and these extra heads. Raises OptionError if the name is invalid.

    The name may also be PACKAGE.MODULE:FUNCTION with `options`, see `nets.custom`; nothing is imported here.
    """
    if importing.is_reference(name):
        return Spec.custom(name, heads, options)
    if options:
        raise OptionError(f"{quote(name)}: takes no options, which are for PACKAGE.MODULE:FUNCTION")
    base, *endings = name.split("-")
    tower, layers = _TOWER.fullmatch(base), _LAYERS.fullmatch(base)
    found: dict[str, Any] = {"tower": None, "layers": None, "activation": "relu", "heads": list(heads)}
    if tower:
        found["tower"] = _tower(base, int(tower[1]), int(tower[2]), nested=tower[3] is not None)
    elif layers:
        found["layers"] = {"count": int(layers[1]), "width": int(layers[2])}
    else:
        raise OptionError(
            f"{quote(name)}: no network has that name, expected one like b6c96 (blocks, channels), b18c384nbt (nested) "
            f"or mlp3x256 (layers, width), with any of the endings {', '.join(ENDINGS)}; or PACKAGE.MODULE:FUNCTION"
        )
    _apply(endings, found, name)
    for kind, make in (("lc0", _lc0), ("lc0_encoders", _encoders)):
        if kind in found:
            found |= {"tower": None, kind: make(found[kind], found["tower"], name, found["activation"])}
    return Spec.from_dict(found, quote(name))


def name_of(spec_: Spec) -> str | None:
    """The name that `spec` maps to this network, apart from its heads; None if it has no name."""
    tower, layers = spec_.tower, spec_.layers
    if tower is not None:
        base = f"b{tower.blocks}c{tower.channels}{'nbt' if tower.kind == 'nested' else ''}"
        excite = tower.excite_ratio and ("se" if tower.excite_ratio == _USUAL_RATIO else f"se{tower.excite_ratio}")
        stem = tower.stem_side != _USUAL_STEM and f"stem{tower.stem_side}"
        endings = [not tower.pool_blocks and "nogp", tower.groups > 1 and f"xt{tower.groups}", excite, stem]
    elif layers is not None:
        base, endings = f"mlp{layers.count}x{layers.width}", []
    elif (lc0 := spec_.lc0) is not None:
        base, ratio = f"b{lc0.blocks}c{lc0.channels}", lc0.channels // (lc0.excite_units or lc0.channels)
        policy = next(ending for ending, policy in _LC0_POLICIES.items() if policy == lc0.policy)
        excite = lc0.excite_units and ("se" if ratio == _USUAL_RATIO else f"se{ratio}")
        endings = [excite, f"lc0{policy}"]
    elif (encoders := spec_.lc0_encoders) is not None:
        base, endings = f"b{encoders.layers}c{encoders.channels}", [False, f"lc0enc{encoders.heads}"]
    else:
        return spec_.function
    endings.append(spec_.activation != "relu" and spec_.activation)
    name = "-".join([base, *(ending for ending in endings if ending)])
    try:
        return name if spec(name, spec_.heads) == spec_ else None
    except OptionError:
        return None


def _tower(base: str, blocks: int, channels: int, nested: bool) -> dict[str, Any]:
    mid = max(channels // 2, 1) if nested else channels
    size = _KATAGO.get(base) or _derived(blocks, channels, mid)
    return {
        "blocks": blocks,
        "channels": channels,
        "kind": "nested" if nested else "residual",
        "mid_channels": mid,
        "inner_blocks": 2 if nested else 0,
        "groups": 1,
        "excite_ratio": None,
        "stem_side": _USUAL_STEM,
        "pass_units": None,
        **size._asdict(),
    }


def _lc0(policy: str, tower: dict[str, Any] | None, name: str, activation: str) -> dict[str, Any]:
    """A tower of Lc0 in place of the tower of that name. Its heads have the widths of Lc0's own networks."""
    if tower is None or tower["kind"] == "nested" or tower["groups"] > 1 or tower["stem_side"] != _USUAL_STEM:
        raise OptionError(f"{quote(name)}: a tower of Lc0 is a name like b10c128-se-lc0, with -mish or -silu at most")
    channels, ratio = tower["channels"], tower["excite_ratio"]
    return {
        "blocks": tower["blocks"],
        "channels": channels,
        "excite_units": None if ratio is None else max(channels // ratio, 1),
        "policy": policy,
        "policy_channels": 32 if policy == "dense" else channels,
        "key_width": channels if policy == "attention" else 0,
        **_LC0_HEADS,
    }


def _encoders(heads: int, tower: dict[str, Any] | None, name: str, activation: str) -> dict[str, Any]:
    """Encoder layers of Lc0 in place of the tower of that name, in the proportions of its large networks."""
    plain = tower is not None and tower == _tower(name.split("-")[0], tower["blocks"], tower["channels"], nested=False)
    if tower is None or not plain or tower["channels"] % heads:
        expected = "with -mish or -silu at most, and a number of heads that divides the channels"
        raise OptionError(f"{quote(name)}: encoder layers of Lc0 have a name like b10c256-lc0enc8, {expected}")
    channels = tower["channels"]
    few = min(channels, 256)
    return {
        "layers": tower["blocks"],
        "channels": channels,
        "width": channels,
        "heads": heads,
        "ffn_width": channels * 3 // 2,
        "ffn_activation": activation,
        "embedding": "dense",
        "around_width": max(channels // 2, 1),
        "embedding_ffn_width": channels * 3 // 2,
        "gates": True,
        "smolgen": {"channels": max(few // 8, 1), "width": few, "outputs": few, "activation": activation},
        "policy_channels": channels,
        "key_width": channels,
        **_LC0_HEADS,
    }


def _derived(blocks: int, channels: int, mid: int) -> _Size:
    """For sizes that KataGo does not have: pooling in every third block, heads a third as wide as the trunk."""
    pool_blocks = tuple(range(3, blocks, 3)) or (blocks // 2 + 1,)
    third = _third(channels)
    return _Size(pool_blocks, _third(mid), third, third, 2 * third)


def _third(channels: int) -> int:
    """About a third; a multiple of 8, which suits GPUs, unless there are too few channels."""
    return max(round(channels / 24) * 8, min((channels + 2) // 3, 8))


def _apply(endings: Iterable[str], found: dict[str, Any], name: str) -> None:
    seen: set[str] = set()
    for ending in endings:
        match = _ENDING.fullmatch(ending)
        if match is None or match.lastgroup is None:
            known = ", ".join(ENDINGS)
            raise OptionError(f"{quote(name)}: unknown ending {quote('-' + ending)}, expected one of {known}")
        key, value = match.lastgroup, match[match.lastgroup]
        if key in seen:
            raise OptionError(f"{quote(name)}: two endings set {key}")
        seen.add(key)
        if key == "activation":
            found[key] = value
        elif key == "lc0":
            found["lc0"] = _LC0_POLICIES[value]
        elif key == "encoders":
            found["lc0_encoders"] = int(value)
        elif found["tower"] is None:
            raise OptionError(f"{quote(name)}: -{ending} is for networks on a board, such as b6c96-{ending}")
        else:
            found["tower"][key] = () if key == "pool_blocks" else int(value or _USUAL_RATIO)
