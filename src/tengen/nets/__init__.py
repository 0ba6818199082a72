"""The networks: blocks, heads, and a zoo of named sizes.

    net = nets.build(nets.spec("b6c96", heads=("ownership",)), game, nnx.Rngs(0))
    outputs = net(planes, scalars)          # outputs.policy, outputs.value, outputs.ownership
    fast = nets.fold(net)

Specs and names need neither JAX nor flax, which are imported when the first network is asked for.
"""

from typing import TYPE_CHECKING

from tengen import late
from tengen.nets.spec import HEADS, Dtype, Head, Layers, Spec, Tower
from tengen.nets.zoo import ENDINGS, name_of, names, spec

if TYPE_CHECKING:
    from tengen.nets.building import build, fold
    from tengen.nets.counting import operations, parameter_count, parts, shapes
    from tengen.nets.fitting import possible_heads, problems
    from tengen.nets.network import Network
    from tengen.nets.outputs import OFF_BOARD, Outputs

__all__ = [
    "ENDINGS",
    "HEADS",
    "OFF_BOARD",
    "Dtype",
    "Head",
    "Layers",
    "Network",
    "Outputs",
    "Spec",
    "Tower",
    "build",
    "fold",
    "name_of",
    "names",
    "operations",
    "parameter_count",
    "parts",
    "possible_heads",
    "problems",
    "shapes",
    "spec",
]

_LATE = {
    "building": ("build", "fold"),
    "counting": ("operations", "parameter_count", "parts", "shapes"),
    "fitting": ("possible_heads", "problems"),
    "network": ("Network",),
    "outputs": ("OFF_BOARD", "Outputs"),
}

__getattr__ = late.names(__name__, _LATE)
