"""Random play of Hironaka's game: moves a second of Tengen next to plain PyTorch, in the same run.

    python benchmarks/hironaka.py --batch 4096 65536
    python benchmarks/hironaka.py --eager                 # also the plain version dispatched op by op by JAX
    python benchmarks/hironaka.py --cores 1 --cpu-time    # on a machine that is busy with other work

A round is two moves: the host names a random subset, the agent a random coordinate of it; shift, reduce; a game that
is over begins again from where it began. The plain version is what the issue of speed is about: the same transition as
batched tensor operations, one after the other. Before anything is timed, both play the same choices from the same
points and must have the same points after each round. Without PyTorch that side is left out, and the output says so.
"""

import argparse
import importlib
import json
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tengen import games
from tengen.games.hironaka import Hironaka, live
from tengen.games.players import draw

torch: Any
try:
    torch = importlib.import_module("torch")
except ModuleNotFoundError:
    torch = None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--batch", type=int, nargs="+", default=[4096, 65536], help="games at once")
    parser.add_argument("--rounds", type=int, default=50, help="of one measurement")
    parser.add_argument("--repeats", type=int, default=5, help="measurements, of which the median counts")
    parser.add_argument("--cores", type=int, help="threads of each side on a CPU (default: all cores)")
    parser.add_argument(
        "--cpu-time", action="store_true", help="count the time of the processor, not the clock's: for a busy machine"
    )
    parser.add_argument("--eager", action="store_true", help="also the plain version op by op in JAX (not PyTorch)")
    parser.add_argument("--json", help="also write the results there")
    args = parser.parse_args()
    game: Any = games.make("hironaka", max_moves=10_000)
    device = jax.devices()[0]
    on_gpu = device.platform != "cpu"
    cores = 1 if on_gpu else args.cores or len(os.sched_getaffinity(0))
    clock = time.process_time if args.cpu_time else time.perf_counter
    print(f"Tengen: {device.device_kind}, JAX {jax.__version__}" + ("" if on_gpu else f", {cores} cores"))
    sides: dict[str, Callable[[np.ndarray], Callable[[], None]]] = {
        "tengen": lambda start: tengen_side(game, start, args.rounds, cores)
    }
    if torch is None:
        print("PyTorch is not installed: there is nothing to compare with")
    else:
        if not on_gpu:
            torch.set_num_threads(cores)
        where = "cuda" if on_gpu and torch.cuda.is_available() else "cpu"
        print(f"PyTorch {torch.__version__} on {where}, {torch.get_num_threads()} threads")
        sides["pytorch"] = lambda start: torch_side(game, start, args.rounds, where)
    if args.eager:
        sides["jax, op by op"] = lambda start: eager_side(game, start, args.rounds)
    check(game)
    results = []
    for batch in args.batch:
        start = np.asarray(jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), batch)).points)
        programs = {name: make(start) for name, make in sides.items()}
        seconds = {name: [] for name in programs}
        for _ in range(args.repeats + 1):  # in turn, so that a busy machine is busy for all; the first compiles
            for name, program in programs.items():
                began = clock()
                program()
                seconds[name].append(clock() - began)
        speed = {name: 2 * batch * args.rounds / statistics.median(times[1:]) for name, times in seconds.items()}
        for name, found in speed.items():
            ratio = f"{speed['tengen'] / found:6.1f}x" if name != "tengen" else ""
            print(f"batch {batch:>8,}  {name:<14}{found / 1e6:>10.2f} million moves/s  {ratio}", flush=True)
        results.append({"batch": batch, "moves_per_second": speed})
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"device": device.device_kind, "cores": cores, "results": results}, file, indent=1)


def tengen_side(game: Hironaka, start: np.ndarray, rounds: int, cores: int) -> Callable[[], None]:
    """Random play by the rules of the game, all rounds in one program; on a CPU one thread for each core."""

    def choose(states: Any, key: Array) -> Any:
        return jax.vmap(game.step)(states, draw(key, jax.vmap(game.legal_actions)(states)))

    def play(first: Any, key: Array) -> Any:
        def a_round(number: Array, states: Any) -> Any:
            host, agent = jax.random.split(jax.random.fold_in(key, number))
            states = choose(choose(states, host), agent)
            over = jax.vmap(lambda points: live(points).sum() <= 1)(states.points)
            fresh = lambda new, old: jnp.where(over.reshape(-1, *[1] * (old.ndim - 1)), new, old)  # noqa: E731
            return jax.tree.map(fresh, first, states)

        return lax.fori_loop(0, rounds, a_round, first)

    program = jax.jit(play)
    parts = [jax.jit(jax.vmap(game.position))(part) for part in np.array_split(start, cores)]
    threads = ThreadPoolExecutor(cores)

    def run() -> None:
        keys = jax.random.split(jax.random.key(1), cores)
        list(threads.map(lambda pair: jax.block_until_ready(program(*pair)), zip(parts, keys, strict=True)))

    return run


def torch_round(points: Any, subset: Any, axis: Any) -> Any:
    """Shift and reduce [B, M, D] points; subset Bool[B, D], axis Int64[B]. Removed points are -1 throughout."""
    alive = points[:, :, 0] >= 0
    total = (points * subset[:, None, :]).sum(2)
    here = torch.arange(points.shape[2], device=points.device)[None, None, :] == axis[:, None, None]
    moved = torch.where(here & alive[:, :, None], total[:, :, None], points)
    below = (moved[:, None, :, :] <= moved[:, :, None, :]).all(3) & alive[:, None, :]
    equal = (moved[:, None, :, :] == moved[:, :, None, :]).all(3)
    index = torch.arange(points.shape[1], device=points.device)
    dominated = (below & ~(equal & (index[None, None, :] >= index[None, :, None]))).any(2)
    return torch.where((alive & ~dominated)[:, :, None], moved, -1.0)


def torch_side(game: Hironaka, start: np.ndarray, rounds: int, where: str) -> Callable[[], None]:
    """The same play as PyTorch operations."""
    first = torch.tensor(start, device=where)
    subsets = torch.tensor(game.subsets, device=where)
    batch, _, dimension = start.shape

    def run() -> None:
        points = first
        with torch.inference_mode():
            for _ in range(rounds):
                subset = subsets[torch.randint(len(subsets), (batch,), device=where)]
                axis = torch.where(subset, torch.rand((batch, dimension), device=where), -1.0).argmax(1)
                points = torch_round(points, subset, axis)
                over = (points[:, :, 0] >= 0).sum(1) <= 1
                points = torch.where(over[:, None, None], first, points)
            if where == "cuda":
                torch.cuda.synchronize()

    return run


def eager_side(game: Hironaka, start: np.ndarray, rounds: int) -> Callable[[], None]:
    """The plain version again, each operation sent to the device by itself, but by JAX: a stand-in, and no PyTorch."""
    first = jnp.asarray(start)
    subsets = jnp.asarray(game.subsets)
    batch, count, dimension = start.shape

    def run() -> None:
        points = first
        for number in range(rounds):
            host, agent = jax.random.split(jax.random.key(number))
            subset = subsets[jax.random.randint(host, (batch,), 0, len(subsets))]
            axis = jnp.where(subset, jax.random.uniform(agent, (batch, dimension)), -1.0).argmax(1)
            alive = points[:, :, 0] >= 0
            total = (points * subset[:, None, :]).sum(2)
            here = jnp.arange(dimension)[None, None, :] == axis[:, None, None]
            moved = jnp.where(here & alive[:, :, None], total[:, :, None], points)
            below = (moved[:, None, :, :] <= moved[:, :, None, :]).all(3) & alive[:, None, :]
            equal = (moved[:, None, :, :] == moved[:, :, None, :]).all(3)
            index = jnp.arange(count)
            dominated = (below & ~(equal & (index[None, None, :] >= index[None, :, None]))).any(2)
            points = jnp.where((alive & ~dominated)[:, :, None], moved, -1.0)
            over = (points[:, :, 0] >= 0).sum(1) <= 1
            points = jnp.where(over[:, None, None], first, points)
        points.block_until_ready()

    return run


def check(game: Hironaka) -> None:
    """Both sides with the same choices must have the same points after every round."""
    if torch is None:
        return
    rng = np.random.default_rng(0)
    batch, dimension = 500, game.options.dimension
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(7), batch))
    points = torch.tensor(np.asarray(states.points))
    step = jax.jit(jax.vmap(game.step))
    for _ in range(10):
        hosts = rng.integers(len(game.subsets), size=batch)
        subset = game.subsets[hosts]
        axes = np.where(subset, rng.random((batch, dimension)), -1).argmax(1)
        over = (points[:, :, 0] >= 0).sum(1) <= 1
        states = step(step(states, jnp.asarray(hosts, jnp.int32)), jnp.asarray(axes, jnp.int32))
        moved = torch_round(points, torch.tensor(subset), torch.tensor(axes))
        points = torch.where(over[:, None, None], points, moved)
        if not np.array_equal(np.asarray(states.points), points.numpy()):
            raise SystemExit("Tengen and PyTorch disagree about a round")
    print("both sides give the same points in 10 rounds of 500 games")


if __name__ == "__main__":
    main()
