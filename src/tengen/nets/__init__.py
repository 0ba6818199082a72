"""The networks: blocks, heads, and a zoo of named sizes.

    net = nets.build(nets.spec("b6c96", heads=("ownership",)), game, nnx.Rngs(0))
    outputs = net(planes, scalars)          # outputs.policy, outputs.value, outputs.ownership
    fast = nets.fold(net)

Specs and names import neither JAX nor flax.
"""

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
