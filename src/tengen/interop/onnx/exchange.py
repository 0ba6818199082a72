"""Exporting networks as ONNX, and checking the file with ONNX Runtime."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from tengen import files, nets
from tengen.errors import TengenError
from tengen.games import players
from tengen.games.core import Game, Observation
from tengen.interop.onnx.tracing import trace
from tengen.nets import saving
from tengen.nets.evaluators import evaluator
from tengen.nets.network import Network

ENDING = ".onnx"
TOLERANCE = 1e-4
_GAMES, _MOVES = 7, 12  # random games, and moves of each, whose positions the file is checked with


def export(network: Path, name: str, out: Path) -> list[str]:
    """Writes the network as a file of ONNX. Returns what its user should know, line by line."""
    if out.suffix != ENDING:
        raise TengenError(f"{out}: expected a name that ends in {ENDING}")
    saved = saving.read(network)
    game = saved.make_game()
    net = saving.load(network, game, dtype="float32")
    about = {"game": {"name": game.name, "version": game.version, "options": asdict(game.options)},
             "spec": saved.spec.to_dict(), "info": saved.info}  # fmt: skip
    try:
        data = to_onnx(net, game, name, about)
    except TengenError as error:
        raise TengenError(f"{name}: {error}") from None
    note = check(data, net, game, name)
    files.write_bytes(out, data)
    return [note]


def to_onnx(net: Network, game: Game, name: str, about: Mapping[str, Any]) -> bytes:
    """The file of a network. It takes any number of positions and has an output for each head, all float32."""
    return trace(_outputs(net, game), _inputs(game)).file(name, {"tengen": json.dumps(about)})


def check(data: bytes, net: Network, game: Game, name: str) -> str:
    """Compares the file with the network on positions of random games, and returns the result in words.

    Raises TengenError if an output differs by more than TOLERANCE. Without ONNX Runtime nothing is compared.
    """
    try:
        import onnxruntime  # type: ignore[reportMissingImports]
    except ModuleNotFoundError:
        return "not checked, because onnxruntime is not installed (pip install onnxruntime)"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    seen = _positions(game)
    folded, params = evaluator(nets.fold(net, "float32", kernels=False))
    with jax.default_matmul_precision("float32"):
        expected = jax.jit(folded.outputs)(params, seen).by_name()
    given = {key: np.asarray(getattr(seen, key), np.float32) for key in _inputs(game)}
    largest = 0.0
    for count in (1, _GAMES):
        found = session.run(names, {key: value[:count] for key, value in given.items()})
        for key, value in zip(names, map(np.asarray, found), strict=True):
            right = np.asarray(expected[key], np.float64)[:count]
            # Scores and moves are large numbers: what counts there is the relative difference.
            off = float(np.max(np.abs(value - right) / np.maximum(np.abs(right), 1), initial=0))
            if value.shape != right.shape or not off <= TOLERANCE:
                raise TengenError(f"{name}: not written, because ONNX Runtime's {key} differs by {off:.2g}")
            largest = max(largest, off)
    return f"ONNX Runtime gives the same outputs, within {largest:.1g}, on {_GAMES} random positions"


def _inputs(game: Game) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and type of each input for one position; those without numbers are left out."""
    given = {"planes": game.planes_shape, "scalars": (game.num_scalars,)}
    return {name: (shape, "float32") for name, shape in given.items() if shape[-1]}


def _outputs(net: Network, game: Game) -> Callable[..., dict[str, Array]]:
    """The network as a function of its inputs, in the order of `_inputs`, to its outputs by name."""
    graph, state = nnx.split(nets.fold(net, "float32", kernels=False))
    names = list(_inputs(game))

    def look(*given: Array) -> dict[str, Array]:
        seen = dict(zip(names, given, strict=True))
        planes = seen["planes"] != 0 if "planes" in seen else jnp.zeros((len(given[0]), *game.planes_shape), bool)
        scalars = seen.get("scalars", jnp.zeros((len(given[0]), 0)))
        return nnx.merge(graph, state)(planes, scalars).by_name()

    return look


def _positions(game: Game) -> Observation:
    """Positions of random games."""

    def move(state: Any, key: Array) -> Any:
        legal = jax.vmap(game.legal_actions)(state)
        after = jax.vmap(game.step)(state, players.draw(key, legal))
        return jax.vmap(lambda over, old, new: jax.tree.map(lambda *pair: jnp.where(over, *pair), old, new))(
            jax.vmap(game.is_over)(after), state, after
        )

    state = jax.vmap(game.init)(jax.random.split(jax.random.key(0), _GAMES))
    step = jax.jit(move)
    for key in jax.random.split(jax.random.key(1), _MOVES):
        state = step(state, key)
    return jax.jit(jax.vmap(game.observe))(state)
