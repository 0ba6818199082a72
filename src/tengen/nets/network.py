"""The networks themselves."""

import abc
import itertools
from typing import ClassVar

import jax.numpy as jnp
from flax import nnx
from jax import lax
from jaxtyping import Array, Bool, Float

from tengen import gpu
from tengen.errors import OptionError
from tengen.games.core import Game
from tengen.nets.blocks import block
from tengen.nets.board import BoardMask, Trunk
from tengen.nets.heads import OUTPUT_GAIN, BoardSummary, Heads, kinds, outputs
from tengen.nets.layers import Conv, Dense, activate, convolve
from tengen.nets.outputs import Outputs
from tengen.nets.specs import Dtype, Layers, Spec, Tower
from tengen.nets.tower import PackedTower

Planes = Bool[Array, "batch height width planes"]
Scalars = Float[Array, "batch scalars"]


class Network(nnx.Module, abc.ABC):
    """Evaluates a batch of positions of one game.

    In evaluation mode it is a pure function of its state and inputs:

        graph, state = nnx.split(net)
        outputs = nnx.merge(graph, state)(planes, scalars)      # in jit, grad, vmap, loops
    """

    def __init__(self, spec: Spec, dtype: Dtype, full_board: bool) -> None:
        self.spec = spec
        self.dtype: Dtype = dtype
        self.full_board = full_board
        self.folded = False
        self.use_running_average = True  # as flax calls it: `net.train()` and `net.eval()` set it

    def __call__(self, planes: Planes, scalars: Scalars, *, train: bool | None = None) -> Outputs:
        """`train` normalises by this batch and updates the running statistics. It must be static under `jit`.

        By default `net.train()` and `net.eval()` decide; a new network is in evaluation mode.
        """
        train = not self.use_running_average if train is None else train
        if train and self.folded:
            raise OptionError("a folded network cannot be trained: it has no statistics any more")
        return self._look(planes, scalars, train)

    @abc.abstractmethod
    def _look(self, planes: Planes, scalars: Scalars, train: bool) -> Outputs:
        """`__call__` after its checks."""

    @abc.abstractmethod
    def fold_norms(self) -> None:
        """Merges all norms with the layers around them, in place."""


class Stem(nnx.Module):
    """The first convolution; every scalar adds to all points alike."""

    _MULTIPLE: ClassVar[int] = 16  # the number of input channels is padded to this, for GPUs

    def __init__(self, side: int, planes: int, scalars: int, channels: int, rngs: nnx.Rngs) -> None:
        self.conv = Conv(side, planes, channels, rngs)
        self.scalars = nnx.data(Dense(scalars, channels, rngs) if scalars else None)

    def inputs(self, planes: Planes, scalars: Scalars, dtype: Dtype) -> Float[Array, "batch height width inputs"]:
        """Scalars become channels whose kernel is zero outside its centre: cheaper than adding a tensor."""
        inputs, before = self._kernel().shape[2], planes.shape[-1]
        x = jnp.pad(planes, ((0, 0), (0, 0), (0, 0), (0, inputs - before))).astype(dtype)
        if scalars.shape[-1]:
            after = inputs - before - scalars.shape[-1]
            x += jnp.pad(scalars, ((0, 0), (before, after))).astype(dtype)[:, None, None]
        return x

    def __call__(self, x: Float[Array, "batch height width inputs"]) -> Trunk:
        return convolve(x, self._kernel().astype(x.dtype))

    def _kernel(self) -> Float[Array, "side side inputs channels"]:
        """For planes, scalars, and padding to a multiple of 16 inputs."""
        kernel = self.conv.kernel[...]
        if self.scalars is not None:
            around = (kernel.shape[0] // 2,) * 2
            middle = jnp.pad(self.scalars.kernel[...][None, None], (around, around, (0, 0), (0, 0)))
            kernel = jnp.concatenate([kernel, middle], 2)
        return jnp.pad(kernel, ((0, 0), (0, 0), (0, -kernel.shape[2] % self._MULTIPLE), (0, 0)))

    def fold(self) -> None:
        """Assembles the kernel once instead of at every call."""
        self.conv.kernel = nnx.Param(self._kernel())
        self.scalars = None


class BoardNetwork(Network):
    """A tower of residual blocks with KataGo's heads."""

    def __init__(self, spec: Spec, tower: Tower, game: Game, rngs: nnx.Rngs, dtype: Dtype, full_board: bool) -> None:
        super().__init__(spec, dtype, full_board)
        self.stem = Stem(tower.stem_side, game.planes_shape[2], game.num_scalars, tower.channels, rngs)
        self.blocks = nnx.List([block(tower, n, spec.activation, rngs) for n in range(1, tower.blocks + 1)])
        self.heads = Heads(spec, tower, game, rngs)
        self.packed: PackedTower | None = nnx.data(None)  # once folded: for GPUs with a program for whole towers

    def _look(self, planes: Planes, scalars: Scalars, train: bool) -> Outputs:
        board = BoardMask.of(planes, self.full_board)
        x = self.stem.inputs(planes if board.on is None else planes & board.on, scalars, self.dtype)

        def plain(x: Array) -> Array:
            x = self.stem(x)
            for residual in self.blocks:
                x = residual(x, board, train)
            return self.heads.from_trunk(x, board, train)

        packed = self.packed
        if packed is not None and board.on is None and packed.supports(x) and gpu.is_hopper():
            neck = lax.platform_dependent(x, cuda=packed, default=plain)
        else:
            neck = plain(x)
        return self.heads(neck, board, train)

    def fold_norms(self) -> None:
        for part in (self.stem, *self.blocks, self.heads):
            part.fold()

    def pack(self, kernels: bool = True) -> None:
        """Prepares the program for the whole tower, if it supports this network, which must be folded.

        Every machine does so, whatever its devices, because machines of a cluster exchange folded parameters.
        """
        parts = self.stem.conv, list(self.blocks), self.heads
        self.packed = PackedTower(*parts, self.spec.activation) if kernels and PackedTower.suits(*parts) else None


class DenseNetwork(Network):
    """Dense layers without norms, for games that have no board."""

    def __init__(self, spec: Spec, layers: Layers, game: Game, rngs: nnx.Rngs, dtype: Dtype) -> None:
        super().__init__(spec, dtype, full_board=True)
        sizes = [game.num_scalars, *[layers.width] * layers.count]
        self.layers = nnx.List([Dense(*size, rngs, bias=True) for size in itertools.pairwise(sizes)])
        self.kinds = kinds(spec, game)
        self.policy = Dense(layers.width, len(self.kinds) * game.num_actions, rngs, bias=True, gain=OUTPUT_GAIN)
        self.summary = BoardSummary(layers.width, spec, game, rngs)

    def _look(self, planes: Planes, scalars: Scalars, train: bool) -> Outputs:
        x = scalars.astype(self.dtype)
        for layer in self.layers:
            x = activate(layer(x), self.spec.activation)
        policies = self.policy(x).reshape(len(x), len(self.kinds), -1).astype(jnp.float32)
        return outputs(self.kinds, policies, self.summary(x))

    def fold_norms(self) -> None:
        """Does nothing: there are no norms."""
