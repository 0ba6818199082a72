"""Building a network from a spec and a game, and folding a trained network for inference."""

from typing import TypeVar, get_args

import jax
from flax import nnx

from tengen import jax_setup
from tengen.errors import OptionError
from tengen.games.core import Game, RandomKey
from tengen.nets import custom, fitting
from tengen.nets.blocks import PoolBias
from tengen.nets.heads import Heads
from tengen.nets.layers import Conv, Dense
from tengen.nets.lc0 import Lc0EncoderNetwork, Lc0Network
from tengen.nets.network import BoardNetwork, DenseNetwork, Network
from tengen.nets.norms import Affine
from tengen.nets.specs import Dtype, Spec
from tengen.schema import quote

N = TypeVar("N", bound=Network)


def build(spec: Spec, game: Game, rngs: nnx.Rngs, *, dtype: Dtype = "bfloat16", full_board: bool = True) -> Network:
    """A new network for the game, with float32 parameters, computing in `dtype`.

    `full_board` promises that plane 0 of every position is all ones, so that nothing is masked. With False, boards of
    several sizes may share a batch; the parameters are the same, and `net.full_board` may be changed later. Raises
    OptionError if the spec is invalid or does not fit the game.
    """
    if dtype not in get_args(Dtype):
        raise OptionError(f"dtype: expected one of {', '.join(get_args(Dtype))}, got {quote(dtype)}")
    spec = Spec.from_dict(spec.to_dict())
    fitting.check(spec, game)
    if spec.function is not None:
        return custom.build(spec, game, rngs, dtype, full_board)
    if spec.lc0 is not None:
        return Lc0Network(spec, spec.lc0, rngs, dtype)
    if spec.lc0_encoders is not None:
        return Lc0EncoderNetwork(spec, spec.lc0_encoders, rngs, dtype)
    if spec.tower is not None:
        return BoardNetwork(spec, spec.tower, game, rngs, dtype, full_board)
    assert spec.layers is not None
    return DenseNetwork(spec, spec.layers, game, rngs, dtype)


def build_for_device(
    spec: Spec, game: Game, key: RandomKey, *, dtype: Dtype = "bfloat16", full_board: bool = True
) -> Network:
    """`build` for an accelerator, whose compiler needs seconds for so many random numbers: the CPU draws them instead.

    If JAX must not use the CPU, one compiled program draws them; a network of a user, which may look at numbers, is
    then built operation by operation.
    """

    def made(key: RandomKey) -> Network:
        return build(spec, game, nnx.Rngs(key), dtype=dtype, full_board=full_board)

    if jax.default_backend() == "cpu":
        return made(key)
    if (cpu := jax_setup.cpu()) is not None:
        with jax.default_device(cpu):
            graph, state = nnx.split(made(jax.device_put(key, cpu)))
        return nnx.merge(graph, jax.device_put(state, jax.local_devices()[0]))
    if spec.function is not None:
        return made(key)
    graph = nnx.graphdef(nnx.eval_shape(lambda: made(key)))
    return nnx.merge(graph, jax.jit(lambda key: nnx.state(made(key)))(key))


def fold(net: N, dtype: Dtype | None = None, *, kernels: bool = True) -> N:
    """The same function as plain convolutions and biases, with parameters in the type that it computes in.

    Folded networks are faster and cannot be trained. `dtype` changes the type that the network computes in. `kernels`
    lets NVIDIA GPUs run Tengen's own programs between the convolutions where that is faster; False leaves all to XLA.
    """
    folded = nnx.clone(net)
    if not net.folded:
        folded.fold_norms()
    folded.dtype = dtype or net.dtype
    folded.folded = True
    folded.use_running_average = True
    for _, module in nnx.iter_modules(folded):
        if isinstance(module, Conv | Dense):
            module.cast(folded.dtype)
        if isinstance(module, Affine | PoolBias | Heads):
            module.kernels = kernels
    if isinstance(folded, BoardNetwork):
        folded.pack(kernels)
    return folded
