"""Beginning with the parameters of a saved network: of the same architecture, or of a smaller one that is grown.

A grown network computes what the small one did (Net2Net, Chen and others, 2016; see docs/nets.md). All of its new
weights have gradients and learn from the first step.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from flax import nnx

from tengen.errors import OptionError
from tengen.games.core import Game
from tengen.nets import saving
from tengen.nets.blocks import BlockChain, PoolBias, PoolChain, Residual, SqueezeExcite
from tengen.nets.heads import Heads, PolicyHead, ValueHead, kinds
from tengen.nets.network import BoardNetwork, DenseNetwork, Network
from tengen.nets.specs import Spec, Tower

Sizes = tuple[int, ...]
Axes = tuple[Sizes | None, Sizes | None]
"""Of a layer whose inputs or outputs are made of several groups of channels: their sizes."""


def start_from(path: Path | str, net: Network, game: Game) -> tuple[Network, tuple[str, ...]]:
    """`net`, a new network, with the parameters of the network at `path`; and the tensors of that one without a place.

    TengenError if the file cannot be used; OptionError if that network is of another kind, or too large.
    """
    saved = saving.read(path)
    if saved.game != game.name:
        raise OptionError(f"{path}: a network for {saved.game} cannot be the start of one for {game.name}")
    own = game if saved.options == asdict(game.options) else saved.make_game()
    small = saving.load(path, own)
    if problem := unfit(small.spec, net.spec) or unfit_inputs(own, game):
        raise OptionError(f"{path}: cannot be the start of this network: {problem}")
    return grown(small, own, net, game)


def grown(small: Network, own: Game, net: Network, game: Game) -> tuple[Network, tuple[str, ...]]:
    """`net`, a new network for `game`, with the parameters of `small`, which plays `own`: one that is not `unfit`.

    Also returns the names of the tensors of `small` without a place.
    """
    fresh = _arrays(net)
    found, lost = _grown(_GrowingNet(small, own, _arrays(small)), _GrowingNet(net, game, fresh))
    state = saving.unnamed({name: jnp.asarray(tensor) for name, tensor in (fresh | found).items()})
    return nnx.merge(nnx.graphdef(net), state), lost


class _GrowingNet(NamedTuple):
    net: Network
    game: Game
    tensors: Mapping[str, np.ndarray]


def _arrays(net: Network) -> dict[str, np.ndarray]:
    return {name: np.asarray(tensor) for name, tensor in saving.named(nnx.state(net)).items()}


def unfit(small: Spec, large: Spec) -> str:
    """Why a network of one spec cannot grow into one of the other; empty if it can."""
    if small.function or large.function:
        same = small.function == large.function
        return "" if same else f"it is built by {small.function or 'Tengen'}, not by {large.function or 'Tengen'}"
    if small.activation != large.activation:
        return f"its activation is {small.activation}, not {large.activation}"
    if small.tower is not None and large.tower is not None:
        return _unfit_tower(small.tower, large.tower)
    if small.is_lc0 or large.is_lc0:
        same = (small.lc0, small.lc0_encoders) == (large.lc0, large.lc0_encoders)
        return "" if same else "a network of Lc0 grows into no other, only into one of the same widths"
    if small.layers is not None and large.layers is not None:
        for what, name in (("layers", "count"), ("units in each layer", "width")):
            one, other = (getattr(layers, name) for layers in (small.layers, large.layers))
            if one > other:
                return f"it has {one} {what}, more than {other}"
        if small.layers.count < large.layers.count and large.activation != "relu":
            return f"layers can only be added between relus, not with {large.activation}"
        return ""
    return "one has a tower, the other dense layers"


def unfit_inputs(small: Game, large: Game) -> str:
    """Why a network for one game cannot read the observations of the other; empty if it can. Boards may differ."""
    one, other = ((game.planes_shape[2], game.num_scalars) for game in (small, large))
    if one == other:
        return ""
    seen = asdict(small.options).get("observation")
    advice = f"; it needs game.observation={seen}" if seen != asdict(large.options).get("observation") else ""
    return f"it sees {one[0]} planes and {one[1]} scalars, not {other[0]} and {other[1]}{advice}"


def _unfit_tower(small: Tower, large: Tower) -> str:
    if small.kind != large.kind:
        return f"its blocks are {small.kind}, not {large.kind}"
    if small.inner_blocks != large.inner_blocks:
        return f"its nested blocks have {small.inner_blocks} blocks inside, not {large.inner_blocks}"
    one, other = (each.groups > 1 and each.mid_channels // each.groups for each in (small, large))
    if one != other:
        return "the groups of its convolutions have another width"
    if small.excite_ratio is not None and large.excite_ratio is None:
        return "it has squeeze-and-excitation"
    if small.attention is not None or large.attention is not None:
        same = ("attention", "blocks", "channels", "mid_channels", "pool_blocks")
        if any(getattr(small, name) != getattr(large, name) for name in same):
            return "a tower with attention grows into no other, only into one of the same widths"
    for name in ("stem_side", "pass_units", "tip_norm"):
        one, other = getattr(small, name), getattr(large, name)
        if one != other:
            return f"its {name} is {one}, not {other}"
    for name in ("channels", "mid_channels", "pool_channels", "policy_channels", "value_channels", "value_width"):
        one, other = getattr(small, name), getattr(large, name)
        if one > other and (name != "pool_channels" or small.pool_blocks):
            return f"its {name} are {one}, more than {other}"
    one, other = (each.mid_channels - each.pool_channels for each in (small, large))
    if small.pool_blocks and one > other:
        advice = f"net.spec with at most {large.mid_channels - one} pool_channels would do"
        return f"its pooling blocks have {one} channels that are not pooled, more than {other}; {advice}"
    if small.excite_ratio is not None and large.excite_ratio is not None:
        one, other = small.channels // small.excite_ratio, large.channels // large.excite_ratio
        if one > other:
            return f"its squeeze-and-excitation has {one} hidden units, more than {other}"
    if _places(small, large) is None:
        return (
            f"its {small.blocks} blocks, of which {_listed(small)} pool, are not found in this order among "
            f"{large.blocks}, of which {_listed(large)} pool; net.spec.tower.pool_blocks says which"
        )
    return ""


def _listed(tower: Tower) -> str:
    return ", ".join(map(str, tower.pool_blocks)) or "none"


def _places(small: Tower, large: Tower) -> list[int] | None:
    """Which block of the large tower takes the place of each of the small one, from 0 on; None if some have none."""
    places: list[int] = []
    for number in range(1, small.blocks + 1):
        pools, first = number in small.pool_blocks, places[-1] + 1 if places else 0
        fitting = (place for place in range(first, large.blocks) if (place + 1 in large.pool_blocks) == pools)
        if (place := next(fitting, None)) is None:
            return None
        places.append(place)
    return places


def _grown(small: _GrowingNet, large: _GrowingNet) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """The tensors of the large network that differ from its fresh ones, and those of the small one without a place."""
    old_axes, new_axes = (dict(_axes(one.net, one.game)) for one in (small, large))
    found: dict[str, np.ndarray] = {}
    renamed: dict[str, str] = {}
    lost = []
    if small.net.spec.tower is not None and large.net.spec.tower is not None:
        places = _places(small.net.spec.tower, large.net.spec.tower) or []
        renamed = {f"blocks.{number}.": f"blocks.{place}." for number, place in enumerate(places)}
        found |= _new_blocks(large, set(places))
    for name, tensor in small.tensors.items():
        block = re.match(r"blocks\.\d+\.", name)
        target = renamed.get(block[0], block[0]) + name[block.end() :] if block else name  # only towers grow in depth
        fresh, axes = large.tensors.get(target), (old_axes.get(name), new_axes.get(target))
        if large.net.spec.function is not None and fresh is not None and fresh.shape != tensor.shape:
            fresh = None  # nothing is known about the order of its channels
        if fresh is None or (placed := _placed(tensor, fresh, *axes)) is None:
            lost.append(name)
        else:
            found[target] = placed
    if isinstance(small.net, DenseNetwork) and isinstance(large.net, DenseNetwork):
        width = small.net.layers[-1].kernel.shape[1]
        for number in range(len(small.net.layers), len(large.net.layers)):
            name = f"layers.{number}.kernel"
            kernel = np.array(large.tensors[name])
            kernel[:, :width] = np.eye(len(kernel), width)
            found[name] = kernel
    return found | _new_excitations(small.net, large, found, renamed), tuple(lost)


def _axes(net: Network, game: Game) -> Iterator[tuple[str, Axes]]:
    """The tensors with an axis that is made of several groups of channels."""
    height, width, _ = game.planes_shape
    policies = len(kinds(net.spec, game))
    if isinstance(net, DenseNetwork):
        yield from _both("policy", None, (game.num_actions,) * policies)
    for path, module in nnx.iter_modules(net):
        at = ".".join(map(str, path))
        if isinstance(module, PoolChain):
            pooled = module.pool.dense.kernel.shape[0] // 3
            yield from _both(f"{at}.first.conv", None, (module.pool.regular, pooled))
        if isinstance(module, PoolBias):
            yield from _both(f"{at}.dense", (module.dense.kernel.shape[0] // 3,) * 3, None)
        if isinstance(module, SqueezeExcite):
            yield from _both(f"{at}.expand", None, (module.squeeze.kernel.shape[0],) * 2)
        if isinstance(module, Heads):
            policy = module.for_policy // 2
            yield from _both(f"{at}.neck", None, (policy, policy, module.neck.kernel.shape[3] - module.for_policy))
        if isinstance(module, PolicyHead):
            channels, layout = module.pool.regular, module.layout
            yield from _both(f"{at}.points", None, (layout.per_point,) * policies)
            yield from _both(f"{at}.extra", (channels,) * 3, (layout.extra,) * policies)
            yield from _both(f"{at}.columns", (channels,) * height, (1,) * policies)
            yield from _both(f"{at}.dense", (channels,) * (height * width + 3), (game.num_actions,) * policies)
        if isinstance(module, ValueHead):
            yield from _both(f"{at}.hidden", (module.hidden.kernel.shape[0] // 3,) * 3, None)


def _both(layer: str, inputs: Sizes | None, outputs: Sizes | None) -> Iterator[tuple[str, Axes]]:
    yield f"{layer}.kernel", (inputs, outputs)
    yield f"{layer}.bias", (None, outputs)


def _placed(old: np.ndarray, fresh: np.ndarray, old_axes: Any, new_axes: Any) -> np.ndarray | None:
    """The fresh tensor with the old one inside; None if it has no place there, as for a board of another size."""
    if old.shape == fresh.shape:
        return old
    (old_in, old_out), (new_in, new_out) = old_axes or (None, None), new_axes or (None, None)
    columns = _indices(old_out or old.shape[-1:], new_out or fresh.shape[-1:])
    if columns is None or old.ndim != fresh.ndim:
        return None
    found = np.array(fresh)
    if old.ndim == 1:
        found[columns[1]] = old[columns[0]]
        return found
    rows = _indices(old_in or (old.shape[-2],), new_in or (fresh.shape[-2],))
    if rows is None or len(old_in or ()) != len(new_in or ()) or old.shape[:-2] != fresh.shape[:-2]:
        return None
    found[..., columns[1]] = 0  # what is new among the inputs does not count yet
    found[..., rows[1][:, None], columns[1]] = old[..., columns[0]]
    return found


def _indices(old: Sizes, new: Sizes) -> tuple[np.ndarray, np.ndarray] | None:
    """Which channels stay, by their old and their new numbers; groups at the end may be new, or dropped."""
    pairs = list(zip(old, new, strict=False))
    if any(one > other for one, other in pairs):
        return None
    numbers = [np.arange(one) for one, _ in pairs]
    before, after = np.cumsum((0, *old)), np.cumsum((0, *new))
    starts = [(start[: len(pairs)]) for start in (before, after)]
    one, other = (np.concatenate([at + n for at, n in zip(start, numbers, strict=True)]) for start in starts)
    return one, other


def _new_blocks(large: _GrowingNet, taken: set[int]) -> dict[str, np.ndarray]:
    """Blocks that the small network does not have add nothing."""
    assert isinstance(large.net, BoardNetwork)
    names: list[str] = []
    for number, block in enumerate(large.net.blocks):
        if number not in taken and isinstance(block, Residual):
            names.append(_last(f"blocks.{number}", block))
            names += [f"blocks.{number}.excite.expand.kernel"] if block.excite is not None else []
    return {name: np.zeros_like(large.tensors[name]) for name in names}


def _last(at: str, block: Residual) -> str:
    """The kernel of the last convolution of a block."""
    branch = block.branch
    if isinstance(branch, BlockChain):
        return f"{at}.branch.steps.{len(branch.steps) - 1}.conv.kernel"
    return f"{at}.branch.second.kernel" if isinstance(branch, PoolChain) else f"{at}.branch.up.conv.kernel"


def _new_excitations(
    small: Network, large: _GrowingNet, found: Mapping[str, np.ndarray], renamed: Mapping[str, str]
) -> dict[str, np.ndarray]:
    """New squeeze-and-excitation halves what a block adds, so the block adds twice as much before it."""
    more: dict[str, np.ndarray] = {}
    if isinstance(small, BoardNetwork) and isinstance(large.net, BoardNetwork):
        for number, block in enumerate(small.blocks):
            at = renamed[f"blocks.{number}."].rstrip(".")
            after = large.net.blocks[int(at.split(".")[1])]
            if isinstance(block, Residual) and isinstance(after, Residual) and not block.excite and after.excite:
                last, expand = _last(at, after), f"{at}.excite.expand.kernel"
                more |= {last: 2 * found[last], expand: np.zeros_like(large.tensors[expand])}
    return more
