"""Sets of up to 64 squares as two 32-bit words, because JAX has no 64-bit integers."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int32, UInt32

FULL = np.uint32(0xFFFFFFFF)


class Bits(NamedTuple):
    """Bit p of `low` is square p, of `high` square 32 + p. The words may be arrays of the same shape."""

    low: UInt32[Any, "*shape"]
    high: UInt32[Any, "*shape"]

    def __and__(self, other: "Bits") -> "Bits":
        return Bits(self.low & other.low, self.high & other.high)

    def __or__(self, other: "Bits") -> "Bits":
        return Bits(self.low | other.low, self.high | other.high)

    def __xor__(self, other: "Bits") -> "Bits":
        return Bits(self.low ^ other.low, self.high ^ other.high)

    def __invert__(self) -> "Bits":
        return Bits(~self.low, ~self.high)

    def __getitem__(self, index: Any) -> "Bits":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Bits(self.low[index], self.high[index])

    def any(self) -> Bool[Array, "*shape"]:
        return (self.low | self.high) != 0

    def keep(self, condition: Bool[Any, "*shape"]) -> "Bits":
        """These squares, or none."""
        return Bits(jnp.where(condition, self.low, 0), jnp.where(condition, self.high, 0))

    def total(self) -> Int32[Array, "*shape"]:
        both = lax.population_count(self.low) + lax.population_count(self.high)
        return both.astype(jnp.int32)

    def union(self) -> "Bits":
        """The squares that are in any set along the first axis."""
        zero = np.uint32(0)
        return Bits(*(lax.reduce(word, zero, lax.bitwise_or, (0,)) for word in self))

    def common(self) -> "Bits":
        """The squares that are in all sets along the first axis."""
        return Bits(*(lax.reduce(word, FULL, lax.bitwise_and, (0,)) for word in self))

    def minus_one(self) -> "Bits":
        """The 64-bit number minus one."""
        return Bits(self.low - np.uint32(1), self.high - (self.low == 0).astype(jnp.uint32))

    def smeared(self) -> "Bits":
        """All squares up to the highest of the set."""
        low, high = self
        for distance in (1, 2, 4, 8, 16):
            low, high = low | (low >> distance), high | (high >> distance)
        return Bits(jnp.where(high != 0, FULL, low), high)

    def halved(self) -> "Bits":
        """Every square moved down by one number."""
        return Bits((self.low >> 1) | (self.high << 31), self.high >> 1)

    def squares(self) -> Bool[Array, "64"]:
        """Whether each square is in the set."""
        places = np.arange(32, dtype=np.uint32)
        return jnp.concatenate([(self.low >> places) & 1, (self.high >> places) & 1]) == 1


def bits_of(squares: Bool[Array, " count"]) -> Bits:
    """The set of the squares that are marked."""
    count = squares.shape[0]
    values = np.uint32(1) << (np.arange(count, dtype=np.uint32) & 31)
    words = jnp.where(squares, values, 0)
    low, high = words[:32].sum(dtype=jnp.uint32), words[32:].sum(dtype=jnp.uint32)
    return Bits(low, high)


def one_bit(square: Int32[Any, "*shape"]) -> Bits:
    """The set of one square; empty for squares below 0 or above 63."""
    at = square.astype(jnp.uint32)
    one = jnp.uint32(1) << (at & 31)
    return Bits(jnp.where(at < 32, one, 0), jnp.where((at >= 32) & (at < 64), one, 0))


def constant(words: UInt32[np.ndarray, "*shape 2"]) -> Bits:
    """Sets from a table whose last axis is the two words."""
    return Bits(words[..., 0], words[..., 1])
