"""Rows: the training targets of one searched position.

N rows are a dict of arrays with first axis N, jnp on the device and np on the host. Targets are from the side of the
player to move, unless said otherwise.

    planes           UInt8[N, ceil(H*W*C/8)]   the bits of Bool[H, W, C], as `packbits` puts them
    scalars          Float32[N, S]
    policy           Float16[N, A]             from the search; zeros where `policy_weight` is 0
    policy_weight    Float32[N]                0 where the search was a cheap one
    outcome          Float32[N, 3]             win, draw, loss; they sum to 1
    search_value     Float32[N]                the root's value, in [-1, 1]; averaged over `selfplay.value_horizon`
    to_play          Int8[N]                   0 or 1: who moves
    ply              Int16[N]
    moves_left       Int16[N]                  plies until the game's end
    weight           Float32[N]                of the whole row
    game             UInt32[N, 2]              the game's number: high word, low word

and, for networks with such heads:

    opponent_policy  Float16[N, A]             the target of the next ply
    opponent_weight  Float32[N]                0 where there is none
    ownership        Int8[N, H, W]             1 the mover's, -1 the opponent's, 0 neither
    score            Float32[N]                at the game's end

and, for games whose rows may come from KataGo (`Game.weighs_targets`), factors of `weight` for single targets:

    value_weight     Float32[N]                for the outcome
    search_weight    Float32[N]                for the value of the search
    final_weight     Float32[N]                for ownership, score and other targets of the game's end

and other targets that the game declares (`games.targets.Target`), under their names: [N, H, W], [N, A] or [N].

A target of the game's end (`ownership`, `score` and those that games declare) may be unknown in some rows, such as
those of a game that was resigned: `unknown` fills its entries, and the row does not teach it. So may `moves_left`.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, UInt8

from tengen import schema
from tengen.errors import OptionError
from tengen.schema import REQUIRED, setting

if TYPE_CHECKING:
    from tengen.games.core import Game

Rows = dict[str, Any]
"""Field -> array, jnp or np."""

EXTRAS = ("opponent_policy", "ownership", "score")
"""Heads that need additional fields, besides targets of a game. The others are trained on fields of every row."""
WEIGHTS = "weights"
"""The extra of formats with weights for single targets."""
TARGET_WEIGHTS = ("value_weight", "search_weight", "final_weight")
"""Their fields, which are 1 in rows that lack them."""
UNKNOWN = -128
"""The entries of a target of whole numbers that is unknown; other targets have NaN there."""
_TARGET = re.compile(r"([a-z][a-z0-9_]*):(point|action|number):(int8|float16|float32)")


class Field(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype


@dataclass(frozen=True)
class RowFormat:
    """Which fields the rows of a game have, and their shapes. Hashable, so that it can be static under `jit`."""

    planes_shape: tuple[int, int, int] = setting(REQUIRED, "H, W, C", low=0, high=2**31 - 1)
    num_scalars: int = setting(REQUIRED, low=0, high=2**31 - 1)
    num_actions: int = setting(REQUIRED, low=0, high=2**31 - 1)
    extras: tuple[str, ...] = setting(
        (), "among EXTRAS and WEIGHTS, in that order, then other targets as NAME:PER:TYPE"
    )

    @staticmethod
    def of(game: "Game[Any]", heads: Iterable[str] = ()) -> "RowFormat":
        """The rows for a network with these extra heads. OptionError if the game has no target for one of them."""
        heads = tuple(heads)
        known = {"opponent_policy", "moves_left", *(target.name for target in game.extra_targets)}
        for head in heads:
            if head not in known and head in EXTRAS:
                raise OptionError(f"{game.name} has no {head} to learn from")
            if head not in known:
                raise OptionError(f"{head}: {schema.unknown('target', head, sorted({*known, *EXTRAS}))}")
        extras = tuple(name for name in EXTRAS if name in heads) + ((WEIGHTS,) if game.weighs_targets else ())
        others = (target for target in game.extra_targets if target.name in heads and target.name not in EXTRAS)
        extras += tuple(f"{target.name}:{target.per}:{target.dtype}" for target in others)
        return RowFormat(game.planes_shape, game.num_scalars, game.num_actions, extras)

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """Name -> shape and type of one row, in a fixed order."""
        height, width, _ = self.planes_shape
        byte, half, single = np.dtype(np.uint8), np.dtype(np.float16), np.dtype(np.float32)
        fields = {
            "planes": Field(((math.prod(self.planes_shape) + 7) // 8,), byte),
            "scalars": Field((self.num_scalars,), single),
            "policy": Field((self.num_actions,), half),
            "policy_weight": Field((), single),
            "outcome": Field((3,), single),
            "search_value": Field((), single),
            "to_play": Field((), np.dtype(np.int8)),
            "ply": Field((), np.dtype(np.int16)),
            "moves_left": Field((), np.dtype(np.int16)),
            "weight": Field((), single),
            "game": Field((2,), np.dtype(np.uint32)),
        }
        if "opponent_policy" in self.extras:
            fields["opponent_policy"] = Field((self.num_actions,), half)
            fields["opponent_weight"] = Field((), single)
        if "ownership" in self.extras:
            fields["ownership"] = Field((height, width), np.dtype(np.int8))
        if "score" in self.extras:
            fields["score"] = Field((), single)
        if WEIGHTS in self.extras:
            fields |= dict.fromkeys(TARGET_WEIGHTS, Field((), single))
        shapes = {"point": (height, width), "action": (self.num_actions,), "number": ()}
        fields |= {name: Field(shapes[per], np.dtype(kind)) for name, per, kind in self.targets}
        return MappingProxyType(fields)

    @cached_property
    def targets(self) -> tuple[tuple[str, str, str], ...]:
        """Name, per what, and type of the targets that are not among EXTRAS."""
        return tuple((match[1], match[2], match[3]) for match in map(_TARGET.fullmatch, self.extras) if match)

    @cached_property
    def field_bytes(self) -> Mapping[str, int]:
        sizes = {name: math.prod(shape) * dtype.itemsize for name, (shape, dtype) in self.fields.items()}
        return MappingProxyType(sizes)

    @cached_property
    def row_bytes(self) -> int:
        return sum(self.field_bytes.values())

    def to_dict(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self)))

    @staticmethod
    def from_dict(data: object) -> "RowFormat":
        """Undo `to_dict`. Raises OptionError, which is a ValueError."""
        return interned(schema.from_data(RowFormat, data, "row format", strict=True))

    def check_together(self) -> Iterator[tuple[str, str]]:
        known = tuple(name for name in (*EXTRAS, WEIGHTS) if name in self.extras)
        others = [match[1] for match in map(_TARGET.fullmatch, self.extras[len(known) :]) if match]
        if self.extras[: len(known)] != known or len(known) + len(set(others)) != len(self.extras):
            yield (
                "extras",
                f"expected some of {', '.join((*EXTRAS, WEIGHTS))}, in this order, then others as NAME:PER:TYPE",
            )

    def holds(self, other: "RowFormat") -> bool:
        """Whether rows of this format have all that rows of `other` have, in the same shapes, or can be given it."""
        return self.lacking(other) is None

    def lacking(self, other: "RowFormat") -> str | None:
        """The first field of `other` that rows of this format do not have."""
        needed = ((name, field) for name, field in other.fields.items() if name not in TARGET_WEIGHTS)
        return next((name for name, field in needed if self.fields.get(name) != field), None)


@lru_cache(maxsize=64)
def interned(form: RowFormat) -> RowFormat:
    """An equal format that has computed its fields already, since thousands of chunks have the same format."""
    return form


def check(form: RowFormat, rows: Mapping[str, Any]) -> int:
    """The number of rows. OptionError, which is a ValueError, names the field that does not match `form`.

    Only shapes and types are checked, so it also works while tracing.
    """
    missing = [name for name in form.fields if name not in rows]
    if missing:
        raise OptionError(f"rows: {missing[0]} is missing")
    unknown = [name for name in rows if name not in form.fields]
    if unknown:
        raise OptionError(f"rows: {unknown[0]} is not a field of these rows, which are {', '.join(form.fields)}")
    count: int | None = None
    for name, (shape, dtype) in form.fields.items():
        found = tuple(np.shape(rows[name]))
        if len(found) != len(shape) + 1 or found[1:] != shape:
            sizes = ", ".join(map(str, ("N", *shape)))
            raise OptionError(f"rows: {name}: expected the shape [{sizes}], got {[*found]}")
        if rows[name].dtype != dtype:
            raise OptionError(f"rows: {name}: expected {dtype}, got {rows[name].dtype}")
        count = found[0] if count is None else count
        if found[0] != count:
            raise OptionError(f"rows: {name}: expected {count} rows as in the fields before it, got {found[0]}")
    return count or 0


def game_numbers(game: np.ndarray) -> np.ndarray:
    """UInt64[N]: the field `game` of rows, UInt32[N, 2], as one number each."""
    words = game.astype(np.uint64)
    return words[:, 0] << np.uint64(32) | words[:, 1]


def count_games(game: np.ndarray) -> int:
    """How many different games there are in the field `game` of rows."""
    return len(np.unique(game_numbers(game)))


def unknown(dtype: Any) -> Any:
    """What fills a target of this type in rows that do not know it."""
    return UNKNOWN if np.issubdtype(dtype, np.integer) else np.nan


def is_unknown(target: Any) -> Any:
    """Bool[...]: where a target (NumPy or JAX) is unknown."""
    return target == UNKNOWN if np.issubdtype(target.dtype, np.integer) else target != target


def blank(form: RowFormat, count: int, xp: Any = np) -> Rows:
    """`count` rows of zeros, whose weight is therefore 0; `xp` is `numpy` or `jax.numpy`."""
    return {name: xp.zeros((count, *shape), dtype) for name, (shape, dtype) in form.fields.items()}


def pack_planes(planes: Bool[Any, "*rows height width planes"]) -> UInt8[Any, "*rows bytes"]:
    """The planes as bits, eight to a byte. NumPy gives NumPy, JAX gives JAX."""
    xp = _library(planes)
    bits = planes.reshape(*planes.shape[:-3], math.prod(planes.shape[-3:]))
    if not bits.size:  # games without a board have no planes, which `packbits` does not expect
        return xp.zeros((*bits.shape[:-1], (bits.shape[-1] + 7) // 8), np.uint8)
    return xp.packbits(bits, axis=-1)


def unpack_planes(
    packed: UInt8[Any, "*rows bytes"], planes_shape: tuple[int, int, int]
) -> Bool[Any, "*rows height width planes"]:
    """Undoes `pack_planes`. NumPy gives NumPy, JAX gives JAX."""
    xp = _library(packed)
    shape = (*packed.shape[:-1], *planes_shape)
    if not math.prod(shape):
        return xp.zeros(shape, bool)
    return xp.unpackbits(packed, axis=-1, count=math.prod(planes_shape)).reshape(shape).astype(bool)


def widened(rows: Rows, small: RowFormat, large: RowFormat) -> Rows:
    """Rows of a small board as rows of a larger one, of which it is the top left corner; both have the same fields.

    Plane 0 marks the points of the board. Actions are one per point and then the others, as in Go.
    """
    import jax.numpy as jnp

    (height, width, _), (full_height, full_width, _) = small.planes_shape, large.planes_shape
    more = ((0, full_height - height), (0, full_width - width))

    def on_board(x: Any) -> Any:
        return jnp.pad(x, ((0, 0), *more, *[(0, 0)] * (x.ndim - 3)))

    def actions(x: Any) -> Any:
        points, others = x[:, : height * width], x[:, height * width :]
        return jnp.concatenate([on_board(points.reshape(-1, height, width)).reshape(len(x), -1), others], -1)

    found = dict(rows)
    found["planes"] = pack_planes(on_board(unpack_planes(rows["planes"], small.planes_shape)))
    per = {"policy": "action", "opponent_policy": "action", "ownership": "point"}
    per |= {name: kind for name, kind, _ in small.targets}
    for name, kind in per.items():
        if name in rows and kind != "number":
            found[name] = actions(rows[name]) if kind == "action" else on_board(rows[name])
    return found


def _library(array: Any) -> Any:
    """NumPy or JAX, which is imported only here, so that reading files does not wait for it."""
    if isinstance(array, np.ndarray):
        return np
    import jax.numpy as jnp

    return jnp
