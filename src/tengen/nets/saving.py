"""Networks as safetensors files whose header describes the network completely. Nothing is pickled.

    nets.saving.save(net, path, game, {"step": 1000})     # a file, or a folder that gets a model.safetensors
    net = nets.saving.load(path, game)

A tensor is named after its place in the network: `blocks.0.branch.steps.0.conv.kernel`. One of int8 numbers comes with
the factors of its last axis, as `blocks.0.branch.steps.0.conv.kernel#scale`.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialize

from tengen import files, games
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.nets import fitting
from tengen.nets.building import build
from tengen.nets.counting import shapes
from tengen.nets.network import Network
from tengen.nets.specs import FILE_NAME, Dtype, Spec
from tengen.schema import before, leaves, quote

_SCHEMA = 1
_WITH_INT8 = 2  # the schema of files that may have int8 tensors
# A single key, so that the same network gives the same bytes.
_KEY = "tengen"
_LISTED = 4  # names in a message
_RANDOM = "#key"
_SCALE = "#scale"
_MOST = 127  # of the whole numbers of an int8 tensor
_LARGE = 1 << 14  # numbers in a tensor from which on eight bits for each are worth their errors
_KINDS = {"float32": "F32", "uint32": "U32", "int32": "I32", "bool": "BOOL"}  # as safetensors names them
Stored = Literal["float32", "bfloat16", "int8"]
"""How kernels and matrices are stored; vectors stay float32. With int8, small ones are bfloat16."""
NetworkInfo = Mapping[str, Any]
"""JSON data: step, samples, run and the like."""


@dataclass(frozen=True)
class NetworkFile:
    spec: Spec
    game: str
    version: int  # of the game's rules and observation
    options: dict[str, Any]  # of the game that the network was trained on
    info: dict[str, Any]  # see NetworkInfo

    def make_game(self) -> Game:
        return games.make(self.game, **self.options)


def named(state: Any) -> dict[str, Array]:
    """{name: array} of an nnx state, in a fixed order. The data of a random key has a name that ends in `#key`."""
    found: dict[str, Array] = {}
    for path, leaf in sorted(nnx.to_flat_state(state), key=_readable):
        name, value = ".".join(map(str, path)), leaf[...]
        is_key = jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
        found[name + _RANDOM if is_key else name] = jax.random.key_data(value) if is_key else value
    return found


def unnamed(tensors: Mapping[str, Any]) -> Any:
    """The nnx state for `nnx.merge` and `nnx.update`: undoes `named`."""
    found = []
    for name, tensor in tensors.items():
        path = tuple(int(part) if part.isdigit() else part for part in name.removesuffix(_RANDOM).split("."))
        is_key = name.endswith(_RANDOM)
        found.append((path, jax.random.wrap_key_data(jnp.asarray(tensor)) if is_key else tensor))
    return nnx.from_flat_state(found)


def first_not_finite(arrays: Mapping[str, Any]) -> str:
    """The name of the first array with a number that is not finite; empty if there is none."""
    for name, array in arrays.items():
        if jnp.issubdtype(array.dtype, jnp.floating) and not np.isfinite(np.asarray(array)).all():
            return name
    return ""


def save(
    net: Network, path: Path | str, game: Game, info: NetworkInfo | None = None, *, stored: Stored = "float32"
) -> Path:
    """Writes the network and returns the file: `path` itself if it ends in .safetensors, else one in that folder.

    Raises OptionError for a network that cannot be saved, TengenError if it cannot be written or has a parameter that
    is not finite: it could not be read back.
    """
    if net.folded:
        raise OptionError("a folded network cannot be saved: save the one that it was folded from")
    fitting.check(net.spec, game)
    file = file_in(Path(path))
    about = {
        "schema": _WITH_INT8 if stored == "int8" else _SCHEMA,
        "spec": net.spec.to_dict(),
        "game": {"name": game.name, "version": game.version, "options": asdict(game.options)},
        "info": dict(info or {}),
    }
    try:
        text = json.dumps(about, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise OptionError(f"the network's info cannot be written as JSON: {error}") from None
    tensors = {name: np.asarray(tensor, order="C") for name, tensor in named(nnx.state(net)).items()}
    _check_writable(file, tensors)
    if stored != "float32":
        for name in [name for name, x in tensors.items() if x.ndim > 1 and x.dtype == np.float32]:
            tensors |= _smaller(name, tensors[name], stored)
        _check_writable(file, tensors)
    files.make_folder(file.parent)
    files.write_bytes(file, serialize(tensors, {_KEY: text}))
    return file


def read(path: Path | str) -> NetworkFile:
    """The header of the file, without its tensors."""
    file = file_in(Path(path))
    with opened(file) as found:
        return _header(file, found)


def check_numbers(path: Path | str) -> None:
    """Raises TengenError unless the file can be read and all of its numbers are finite."""
    file = file_in(Path(path))
    with opened(file) as found:
        for name in found.keys():  # noqa: SIM118 - the file is no dictionary
            _check_finite(file, name, found.get_tensor(name))


def load(
    path: Path | str,
    game: Game | None = None,
    *,
    spec: Spec | None = None,
    dtype: Dtype = "bfloat16",
    full_board: bool = True,
) -> Network:
    """The network in a file, or in the folder that `save` was given, for `game` or for the one it was trained on.

    The game may have other options (another board size) as long as the parameters fit. With `spec`, the network must
    have that spec. Raises TengenError if the file is damaged or the wrong one.
    """
    file = file_in(Path(path))
    with opened(file) as found:
        saved = _header(file, found)
        try:
            game = saved.make_game() if game is None else game
        except ValueError as error:
            raise TengenError(f"{file}: its game cannot be made: {error}") from None
        _check_game(file, saved, game)
        if spec is not None and spec != saved.spec:
            raise TengenError(f"{file}: another network than expected: {_difference(spec, saved.spec)}")
        wanted = _shapes(file, saved.spec, game)
        _check_names(file, {*wanted, *_scales(wanted, found)}, set(found.keys()))
        tensors = {name: _tensor(file, found, name, shape) for name, shape in wanted.items()}
    graph = nnx.graphdef(nnx.eval_shape(lambda: build(saved.spec, game, nnx.Rngs(0), dtype=dtype)))
    net = nnx.merge(graph, unnamed(tensors))
    net.full_board = full_board or saved.spec.layers is not None
    return net


def file_in(path: Path) -> Path:
    return path if path.suffix == ".safetensors" else path / FILE_NAME


@contextlib.contextmanager
def opened(file: Path, what: str = "a network") -> Iterator[Any]:
    """A safetensors file, opened. TengenError if it cannot be read; `what` it should be, for the message."""
    try:
        files.check_regular(file)
        with files.reading(file), safe_open(file, framework="numpy") as found:
            yield found
    except FileNotFoundError:
        raise TengenError(f"{file}: there is no such file, expected {what} that Tengen saved") from None
    except SafetensorError as error:
        raise TengenError(f"{file}: not a whole safetensors file ({error})") from None


def _header(file: Path, found: Any) -> NetworkFile:
    text = (found.metadata() or {}).get(_KEY)
    if text is None:
        raise TengenError(f"{file}: a safetensors file, but not of a Tengen network (no {_KEY!r} in its metadata)")
    try:
        about = json.loads(text)
        if about["schema"] not in (_SCHEMA, _WITH_INT8):
            newer = f"schema {quote(about['schema'])}, this Tengen reads {_SCHEMA} and {_WITH_INT8}"
            raise TengenError(f"{file}: written by another version of Tengen ({newer})")
        game, info = about["game"], about["info"]
        name, version, options = str(game["name"]), int(game["version"]), dict(game["options"])
        return NetworkFile(Spec.from_dict(about["spec"]), name, version, options, dict(info))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)
        raise TengenError(f"{file}: the description of its network cannot be understood ({reason})") from None


def _check_game(file: Path, saved: NetworkFile, game: Game) -> None:
    if saved.game != game.name:
        raise TengenError(f"{file}: a network for {saved.game}, expected one for {game.name}")
    if saved.version != game.version:
        raise TengenError(
            f"{file}: made for version {saved.version} of {game.name}; the rules or what a network sees have changed "
            f"since (version {game.version})"
        )
    own = asdict(game.options)
    seen = (before(type(game.options)) | saved.options).get("observation")
    if "observation" in own and seen != own["observation"]:
        raise TengenError(
            f"{file}: a network for {game.name} with observation: {seen}, expected one for observation: "
            f"{own['observation']} (the planes and scalars that a network sees)"
        )


def _shapes(file: Path, spec: Spec, game: Game) -> dict[str, jax.ShapeDtypeStruct]:
    try:
        return jax.eval_shape(named, nnx.state(shapes(spec, game)))
    except OptionError as error:
        raise TengenError(f"{file}: {error}") from None


def _check_writable(file: Path, tensors: Mapping[str, Any]) -> None:
    if bad := first_not_finite(tensors):
        raise TengenError(f"{file}: not written, because {bad} holds numbers that are not finite")


def _smaller(name: str, tensor: np.ndarray, stored: Stored) -> dict[str, np.ndarray]:
    """The tensors to store in place of a float32 one of two axes or more."""
    if stored == "bfloat16" or tensor.size < _LARGE:
        return {name: tensor.astype(jnp.bfloat16)}
    inputs = tensor.reshape(-1, tensor.shape[-1])
    scale = np.abs(inputs).max(0) / np.float32(_MOST)
    levels, carry = np.zeros(inputs.shape, np.int8), np.zeros_like(scale)
    for place, exact in enumerate(inputs / np.where(scale > 0, scale, 1)):
        # What one weight is rounded by, the next one makes up for: otherwise the errors of all inputs that are
        # positive on average would add up to another bias of the layer.
        rounded = np.clip(np.rint(exact + carry), -_MOST, _MOST)
        levels[place], carry = rounded, exact + carry - rounded
    return {name: levels.reshape(tensor.shape), name + _SCALE: scale}


def _scales(wanted: Mapping[str, jax.ShapeDtypeStruct], found: Any) -> set[str]:
    """The names of the factors that belong to the int8 tensors of a file."""
    there = [name for name in found.keys() if name in wanted and len(wanted[name].shape) > 1]  # noqa: SIM118
    return {name + _SCALE for name in there if found.get_slice(name).get_dtype() == "I8"}


def _check_names(file: Path, wanted: set[str], there: set[str]) -> None:
    for names, what in ((wanted - there, "missing"), (there - wanted, "not part of the network")):
        if names:
            listed = ", ".join(sorted(names)[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
            raise TengenError(f"{file}: {len(names)} tensors are {what}: {listed}")


def _tensor(file: Path, found: Any, name: str, wanted: jax.ShapeDtypeStruct) -> np.ndarray:
    stored = found.get_slice(name)
    kind, size = stored.get_dtype(), tuple(stored.get_shape())
    expected = _KINDS[wanted.dtype.name]
    smaller = {"F32": ("BF16", "I8")[: len(size)]}.get(expected, ())  # vectors have no factors
    if kind not in (expected, *smaller) or size != wanted.shape:
        raise TengenError(f"{file}: {name}: expected {expected} {list(wanted.shape)}, got {kind} {list(size)}")
    tensor = found.get_tensor(name)
    if kind == "I8":
        scale = _tensor(file, found, name + _SCALE, jax.ShapeDtypeStruct(size[-1:], np.float32))
        with np.errstate(over="ignore"):  # which is checked
            tensor = tensor * scale
    _check_finite(file, name, tensor)
    return tensor.astype(wanted.dtype, copy=False)


def _check_finite(file: Path, name: str, tensor: np.ndarray) -> None:
    if first_not_finite({name: tensor}):
        raise TengenError(f"{file}: {name}: holds numbers that are not finite, as after a training that diverged")


def _difference(expected: Spec, found: Spec) -> str:
    there = dict(leaves(found.to_dict()))
    others = [(key, value) for key, value in leaves(expected.to_dict()) if value != there.get(key)]
    return "; ".join(f"{key} is {quote(there.get(key))}, not {quote(value)}" for key, value in others[:_LISTED])


def _readable(item: tuple[tuple[Any, ...], Any]) -> list[tuple[bool, Any]]:
    """Sorts numbers as numbers, so that block 10 comes after block 9."""
    return [(isinstance(part, str), part) for part in item[0]]
