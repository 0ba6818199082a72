"""The learner: samples per second on the present devices, and how much of their arithmetic that is.

    python benchmarks/learner.py b6c96 --size 9 --batch 1024 2048
    python benchmarks/learner.py b10c128 --size 19 --batch 1024 --peak 790
    python benchmarks/learner.py b6c96 --size 9 --batch 1024 --versions plain programs --profile 20 --agree 50

Random rows lie in a ring on the device. Drawing a batch, symmetries, forward, backward, optimiser and averages all run
in one compiled loop, as in a run. A sample costs three times what a look costs: forward, and gradients of inputs and
weights. Prints the median over the repeats. `--peak` is what the device can do, in TFLOP/s.

`--versions` measures the step with and without Tengen's GPU programs, `--profile` lists the kernels that take longest,
and `--agree` compares the losses of the two versions after some steps on the same rows.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
from flax import nnx
from jax import Array

from tengen import games, nets, train
from tengen.bench.timing import median_seconds
from tengen.data.format.rows import RowFormat, pack_planes
from tengen.data.store import buffer
from tengen.errors import TengenError
from tengen.train.alpha_zero import from_buffer

_VERSIONS = {"auto": None, "plain": False, "programs": True}


def main() -> int:
    args = _arguments()
    try:
        game = games.make(args.game, **({} if args.size is None else {"size": args.size}))
        heads = nets.possible_heads(game) if args.heads is None else tuple(args.heads)
        net = nets.build(nets.spec(args.name, heads), game, nnx.Rngs(0), dtype=args.dtype, full_board=not args.masked)
        operations = 3 * nets.operations(net, game)
        devices = jax.local_devices()
        print(
            f"{args.name} on {game.name} {game.planes_shape[0]}x{game.planes_shape[1]}, {len(devices)} x "
            f"{devices[0].device_kind}, {args.dtype}, {args.optimizer}, heads: {', '.join(heads) or 'none'}; "
            f"{operations / 1e6:,.1f} million operations per sample",
            flush=True,
        )
        for batch in args.batch:
            losses = {}
            for version in args.versions:
                run = LearnerRun(net, game, heads, batch, version, args)
                if args.agree:
                    losses[version] = run.take(args.agree)
                compiling, seconds = run.measure()
                achieved = operations * batch / seconds / 1e12
                share = f", {achieved / (args.peak * len(devices)):.1%} of peak" if args.peak else ""
                print(
                    f"  batch {batch}{'' if version == 'auto' else f', {version}'}: {seconds * 1e6:,.0f} us, "
                    f"{batch / seconds:,.0f} samples/s, {achieved:,.1f} TFLOP/s{share} (first call {compiling:.1f} s)",
                    flush=True,
                )
                if args.profile:
                    run.profile(args.profile)
            if args.agree:
                words = ", ".join(f"{version} {loss:.5f}" for version, loss in losses.items())
                print(f"    mean loss of {args.agree} steps: {words}", flush=True)
    except TengenError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


class LearnerRun:
    """A learner with its state and rows."""

    def __init__(
        self,
        net: nets.Network,
        game: games.Game,
        heads: tuple[nets.Head, ...],
        batch: int,
        version: str,
        args: argparse.Namespace,
    ) -> None:
        settings = train.TrainSettings(batch=batch, symmetries=not args.no_symmetries)
        settings = replace(settings, optimizer=replace(settings.optimizer, kind=args.optimizer))
        self.learner = train.Learner(net, game, settings, kernels=_VERSIONS[version])
        form = RowFormat.of(game, heads)
        filled = buffer.make(form, args.rows)
        filled = filled._replace(rows=random_rows(form, args.rows), filled=filled.filled + args.rows)
        self.data = jax.device_put((filled, args.rows), self.learner.everywhere)
        self.state, self.key = self.learner.start(net), jax.random.key(0)
        self.steps, self.repeats = args.steps, args.repeats
        self.compiling = 0.0

    def take(self, steps: int) -> float:
        """The mean loss of that many steps."""
        return float(self._take(steps))

    def _take(self, steps: int) -> Array:
        begin = time.perf_counter()
        self.state, figures = self.learner.many(self.state, self.key, from_buffer, self.data, steps)
        if not self.compiling:
            jax.block_until_ready(figures)
            self.compiling = time.perf_counter() - begin
        return figures["loss"]

    def measure(self) -> tuple[float, float]:
        """Seconds of the first call, and of one step."""
        self.take(self.steps)
        return self.compiling, median_seconds(lambda: self._take(self.steps), repeats=self.repeats) / self.steps

    def profile(self, most: int) -> None:
        """Prints the number of kernels in a step, and those that take the most time."""
        steps = 5
        with tempfile.TemporaryDirectory() as folder:
            with jax.profiler.trace(folder):
                jax.block_until_ready(self._take(steps))
            (path,) = Path(folder).rglob("*.xplane.pb")
            data = jax.profiler.ProfileData.from_file(str(path))
        found: dict[str, list[float]] = {}
        for plane in data.planes:
            for line in plane.lines if "GPU" in plane.name else ():
                for event in line.events if line.name and line.name.startswith("Stream") else ():
                    found.setdefault(event.name, []).append(event.duration_ns / 1000)
        if not found:
            print("    no kernels of a GPU in the profile")
            return
        number, busy = sum(map(len, found.values())) / steps, sum(map(sum, found.values())) / steps
        print(f"    {number:.0f} kernels, {busy:,.0f} us in all; us and number per step:")
        for name, times in sorted(found.items(), key=lambda item: -sum(item[1]))[:most]:
            print(f"    {sum(times) / steps:9.1f} {len(times) / steps:6.1f}  {name[:110]}")


def random_rows(form: RowFormat, count: int) -> dict[str, np.ndarray]:
    """Rows in which every target is possible."""
    numbers = np.random.default_rng(0)
    rows = {name: np.zeros((count, *shape), dtype) for name, (shape, dtype) in form.fields.items()}
    planes = numbers.random((count, *form.planes_shape), np.float32) < 0.3
    planes[..., :1] = True
    rows["planes"] = pack_planes(planes)
    for name in ("policy", "opponent_policy"):
        if name in rows:
            drawn = numbers.exponential(size=rows[name].shape)
            rows[name] = (drawn / drawn.sum(1, keepdims=True)).astype(np.float16)
    for name in ("weight", "policy_weight", "opponent_weight"):
        if name in rows:
            rows[name] += 1
    rows["outcome"] = np.eye(3, dtype=np.float32)[numbers.integers(0, 3, count)]
    rows["to_play"] = numbers.integers(0, 2, count).astype(np.int8)
    rows["moves_left"] = numbers.integers(0, 80, count).astype(np.int16)
    if "ownership" in rows:
        rows["ownership"] = numbers.integers(-1, 2, rows["ownership"].shape).astype(np.int8)
    return rows


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Samples per second of the learner.")
    parser.add_argument("name", nargs="?", default="b6c96", help="a network that `tengen nets` knows (b6c96)")
    parser.add_argument("--game", default="go", help="whose rows (go)")
    parser.add_argument("--size", type=int, default=None, help="size of the board, for games that have one")
    parser.add_argument("--batch", type=int, nargs="+", default=[1024, 2048], help="rows in a step (1024 2048)")
    parser.add_argument("--rows", type=int, default=100_000, help="rows in the ring (100000)")
    parser.add_argument("--dtype", default="bfloat16", help="bfloat16 or float32")
    parser.add_argument("--heads", nargs="*", default=None, help="extra heads (all that the game can teach)")
    parser.add_argument("--optimizer", default="adamw", help="sgd, adamw or muon (adamw)")
    parser.add_argument("--masked", action="store_true", help="as if boards of several sizes shared the batch")
    parser.add_argument("--no-symmetries", action="store_true", help="show rows as they are")
    parser.add_argument(
        "--versions", nargs="+", default=["auto"], choices=_VERSIONS, help="with GPU programs or without (auto)"
    )
    parser.add_argument("--profile", type=int, default=0, help="list this number of kernels (0)")
    parser.add_argument("--agree", type=int, default=0, help="compare the losses of the first steps (0)")
    parser.add_argument("--peak", type=float, default=None, help="TFLOP/s that one device can do (H200, bf16: 790)")
    parser.add_argument("--steps", type=int, default=100, help="steps in one compiled loop (100)")
    parser.add_argument("--repeats", type=int, default=5, help="runs of the loop; the median counts (5)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
