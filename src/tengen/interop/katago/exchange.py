"""Exporting networks to KataGo, and importing them, from file to file."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from tengen import games
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.interop.katago import model_file
from tengen.interop.katago.model import KataGoModel
from tengen.interop.katago.network import from_katago, to_katago
from tengen.nets import saving
from tengen.nets.network import Network

ENDINGS = (".bin.gz", ".bin")
_SURE = 0.001  # a chance of a draw that makes no difference
_PLAYED = (64, 48)  # random games in which chances of draws are looked for, after 0 to so many moves


def export(network: Path, name: str, out: Path) -> list[str]:
    """Writes the network as a file for KataGo. Returns what its user should know, line by line."""
    if not out.name.endswith(ENDINGS):
        raise TengenError(f"{out}: expected a name that ends in {' or '.join(ENDINGS)}, as KataGo wants it")
    game = saving.read(network).make_game()
    net = saving.load(network, game, dtype="float32")
    model = to_katago(net, game, name)
    notes = [_draws(net, game)]
    if net.spec.tower is not None and "score" not in net.spec.heads:
        notes.append("the network has no score head: KataGo will see a score of 0 everywhere")
    if model.version > 8:
        notes.append("its short-term errors are constant; KataGo weights all playouts alike")
    model_file.write(model, out)
    return [note for note in notes if note]


def import_network(file: Path, out: Path, options: dict[str, Any]) -> str:
    """Writes a network of KataGo as one of Tengen for Go with these options, and returns a description of it."""
    model = model_file.read(file)
    game = games.make("go", **{"size": 19, **options, "observation": "katago"})
    try:
        net = from_katago(model, game)
    except TengenError as error:
        raise TengenError(f"{file}: {error}") from None
    info = {"katago": {"name": model.name, "version": model.version}}
    saving.save(net, out, game, info)
    return describe(model, game)


def _draws(net: Network, game: Game) -> str:
    """A warning if the network expects draws, which KataGo's networks do not know: they are left out."""
    count, moves = _PLAYED
    graph, parameters = nnx.split(net)

    @jax.jit
    def chances(parameters: Any) -> jax.Array:
        def played(key: jax.Array, length: jax.Array) -> Any:
            def move(ply: jax.Array, state: Any) -> Any:
                likely = jnp.where(game.legal_actions(state), 0.0, -1e9)
                return game.step(state, jax.random.categorical(jax.random.fold_in(key, ply), likely))

            return jax.lax.fori_loop(0, length, move, game.init(key))

        keys = jax.random.split(jax.random.key(0), count)
        seen = jax.vmap(game.observe)(jax.vmap(played)(keys, jnp.arange(count) * moves // count))
        return jax.nn.softmax(nnx.merge(graph, parameters)(seen.planes, seen.scalars).value)

    win, draw, loss = np.moveaxis(np.asarray(chances(parameters), np.float64), -1, 0)
    if draw.max() < _SURE:
        return ""
    off = np.abs((win - loss) / (win + loss) - (win - loss))
    return (
        f"the network expects draws (up to {draw.max():.1%}), and KataGo's networks do not know them: in random games "
        f"its values differ by {off.mean():.3f} on average, {off.max():.3f} at most"
    )


def describe(model: KataGoModel, game: Game) -> str:
    """The imported network in one line."""
    rules = ", ".join(f"{key} {value}" for key, value in asdict(game.options).items() if key in ("size", "komi", "ko"))
    blocks = f"{len(model.blocks)} blocks of {model.channels} channels"
    found = f"{model.name}: version {model.version}, {blocks}, for go ({rules})"
    if model.areas_by_suicide and not game.options.suicide:
        found += (
            "\nnote: it expects pass-alive areas as if suicide were allowed; Tengen computes them by the rules of the "
            "game, which rarely differs"
        )
    return found
