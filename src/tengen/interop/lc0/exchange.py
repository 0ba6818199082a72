"""Exporting networks to Lc0, and importing them, from file to file."""

from pathlib import Path
from typing import Any

from tengen import games
from tengen.errors import TengenError
from tengen.interop.lc0 import weights_file
from tengen.interop.lc0.encoders import others
from tengen.interop.lc0.network import ACTIVATIONS, from_lc0, to_lc0
from tengen.nets import saving
from tengen.nets.network import Network

ENDINGS = (".pb.gz", ".pb")
FILE_NAME = "lc0.pb.gz"  # beside the file of a network that Lc0 can compute
_SMALLEST = 500_000  # bytes of a file that Lc0 finds by itself


def export(network: Path, name: str, out: Path, encoding: weights_file.Encoding = "linear16") -> list[str]:
    """Writes the network as a file for Lc0. Returns what its user should know, line by line."""
    if not out.name.endswith(ENDINGS):
        raise TengenError(f"{out}: expected a name that ends in {' or '.join(ENDINGS)}, as Lc0 wants it")
    saved = saving.read(network)
    made = to_lc0(saving.load(network, saved.make_game(), dtype="float32"), name)
    steps = saved.info.get("step")
    if isinstance(steps, int) and steps >= 0:
        made["training_params"] = {"training_steps": steps}
    weights_file.write(made, out, encoding)
    notes = ["the file needs Lc0 0.33 or newer"] if encoding == "float32" else []
    if "moves_left" not in saved.spec.heads:
        notes.append("the network has no head for moves left, which Lc0 uses to win soon and to lose late")
    if out.stat().st_size < _SMALLEST:
        notes.append("Lc0 does not find so small a file by itself; name it with --weights")
    return notes


def write_beside(net: Network, folder: Path, steps: int) -> None:
    """Writes a network that Lc0 can compute once more, for Lc0, into its folder; does nothing for others."""
    if net.spec.is_lc0 and net.spec.activation in ACTIVATIONS:
        made = to_lc0(net, folder.name) | {"training_params": {"training_steps": steps}}
        weights_file.write(made, folder / FILE_NAME)


def import_network(file: Path, out: Path, options: dict[str, Any]) -> str:
    """Writes a network of Lc0 as one of Tengen, and returns a description of it."""
    net = weights_file.read(file)
    game = games.make("chess", **options)
    try:
        made = from_lc0(net, game)
    except TengenError as error:
        raise TengenError(f"{file}: {error}") from None
    tower, body = made.spec.lc0, made.spec.lc0_encoders
    if body is not None:
        words = [f"{body.layers} encoder layers of {body.channels} channels and {body.heads} heads"]
        words += [] if body.smolgen is None else ["smolgen"]
    else:
        assert tower is not None
        words = [f"{tower.blocks} blocks of {tower.channels} channels", f"policy by {tower.policy}"]
    words += ["moves left"] if made.moves_left is not None else []
    if left_out := others(net["weights"]):
        words.append(f"without its heads {', '.join(left_out)}")
    steps = net.get("training_params", {}).get("training_steps")
    info = {"lc0": {"file": file.name}} | ({} if steps is None else {"step": steps})
    saving.save(made, out, game, info)
    return f"{file.name}: {', '.join(words)}"
