"""The programs of benchmarks/convs on a Hopper GPU: whether they are right, and how long they take.

    python benchmarks/training_convs.py check time
    python benchmarks/training_convs.py learn learn128 --seconds 300
    python benchmarks/training_convs.py variants

check     runs of convolutions and their gradients against the plain layers, twice: the same numbers both times?
time      runs forward only, and forward and backward, for one convolution of a run, by programs and by cuDNN and XLA
variants  the same programs with other numbers of units that are loaded ahead
learn     a step of the learner (Muon, 2,048 rows) of b6c96 by programs and by layers; learn128: of b10c128

Every part prints as it goes. `--seconds` ends a process that hangs, and shows where.
"""

import argparse
import faulthandler
import statistics
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax

from benchmarks.convs import convs
from tengen import games, gpu, nets, train
from tengen.bench.learner import learning
from tengen.nets.layers import activate, convolve
from tengen.nets.norms import EPSILON

BEGIN, LOOPS = time.time(), 10
PARTS = "check", "time", "variants", "learn", "learn128"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=PARTS, default=["check", "time"])
    parser.add_argument("--seconds", type=int, default=200, help="the process ends after that")
    parser.add_argument("--boards", type=int, default=2048)
    args = parser.parse_args()
    faulthandler.dump_traceback_later(args.seconds, exit=True)
    say(jax.devices(), "hopper:", gpu.is_hopper(), args.parts)
    good = True
    if "check" in args.parts:
        for case in (
            (1201, 9, 96, "mish", 3),
            (1201, 9, 96, "relu", 4),
            (1201, 9, 128, "mish", 3),
            (601, 13, 96, "silu", 2),
            (1201, 8, 96, "mish", 2),
        ):
            good &= check(*case)
    if "time" in args.parts:
        for channels in (96, 128):
            compare(args.boards, channels)
    if "variants" in args.parts:
        for channels in (96, 128):
            for ahead in ((4, 2), (2, 1), (6, 3), (9, 3)):
                convs.AHEAD = dict(zip(("forward", "backward"), ahead, strict=True))
                found = [run_time(args.boards, 9, channels, 4, True, back) for back in (False, True)]
                say(f"{channels} channels, {ahead} ahead: forward {found[0]:.1f} us, with backward {found[1]:.1f} us")
    for part, name in (("learn", "b6c96"), ("learn128", "b10c128")):
        if part in args.parts:
            for programs in (True, False):
                learn(name, args.boards, programs)
    say("done")
    return 0 if good else 1


def say(*words: object) -> None:
    print(f"[{time.time() - BEGIN:5.1f}]", *words, flush=True)


def drawn(seed: int, *shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape, jnp.float32)


def sums_of(x: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    return jnp.stack([wide.sum((0, 1, 2)), jnp.square(wide).sum((0, 1, 2))])


def layers(x: jax.Array, sums: jax.Array, params: Any, activation: Any) -> Any:
    """What `convs.convolved` computes, without running statistics."""
    streams, count = [x], x.size // x.shape[3]
    for k, (gamma, beta, kernel) in enumerate(params):
        mean = sums[0] / count
        scale = gamma * lax.rsqrt(jnp.maximum(sums[1] / count - jnp.square(mean), 0) + EPSILON)
        a = activate(streams[-1].astype(jnp.float32) * scale + (beta - mean * scale), activation).astype(x.dtype)
        y = convolve(a, kernel.astype(x.dtype))
        streams.append(y + streams[-2] if k % 2 else y)
        sums = sums_of(streams[-1])
    return streams[-1], streams[-2], sums


def programs(x: jax.Array, sums: jax.Array, params: Any, activation: Any) -> Any:
    zero = jnp.zeros(x.shape[3])
    packed = convs.pack([kernel for *_, kernel in params])
    found: Any = convs.convolved(x, sums, params, [(zero, zero)] * len(params), packed, 0, activation)
    return found[0]


def arguments(boards: int, side: int, channels: int, count: int) -> tuple[Any, Any, Any]:
    x = drawn(0, boards, side, side, channels).astype(jnp.bfloat16)
    params = []
    for k in range(count):
        gamma, beta = 1 + 0.2 * drawn(2 * k + 1, channels), 0.2 * drawn(2 * k + 2, channels)
        params.append((gamma, beta, drawn(100 + k, 3, 3, channels, channels) / 30))
    return x, jax.jit(sums_of)(x), params


def check(boards: int, side: int, channels: int, activation: Any, count: int) -> bool:
    """Whether the programs agree with the layers, and with themselves."""
    given = arguments(boards, side, channels, count)
    changes = [drawn(k, *given[0].shape).astype(jnp.bfloat16) for k in (7, 8)]
    second = changes[1] if count % 2 else jnp.zeros_like(changes[1])
    cotangents = changes[0], second, drawn(9, 2, channels) / (boards * side * side)

    def run(function: Any) -> list[Any]:
        def all_of(*given: Any) -> Any:
            results, back = jax.vjp(lambda *given: function(*given, activation), *given)
            return results, back(cotangents)

        return [np.asarray(x, np.float32) for x in jax.tree.leaves(jax.jit(all_of)(*given))]

    found, again, expected = run(programs), run(programs), run(layers)
    same = all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))
    names = ["y", "stream", "sums", "dx", "dsums"]
    names += [f"d{name}{k}" for k in range(count) for name in ("gamma", "beta", "kernel")]
    errors = [np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in zip(found, expected, strict=True)]
    limit = 0.06 if activation == "relu" else 0.01  # of relu, because signs of numbers near 0 differ
    good = bool(same and max(errors) <= limit)  # not a number is bad, too
    say(f"check {boards} x {side}x{side}x{channels} {activation}, {count} convolutions: {'good' if good else 'WRONG'}; "
        f"twice the same: {same}; worst {max(errors):.4f} (to {limit})")  # fmt: skip
    say("   ", ", ".join(f"{name} {error:.4f}" for name, error in zip(names, errors, strict=True)))
    return good


def timed(function: Any, *given: Any) -> float:
    """Microseconds of a call of a jitted function."""
    run = jax.jit(function)
    jax.block_until_ready(run(*given))
    found = []
    for _ in range(5):
        begin = time.perf_counter()
        jax.block_until_ready(run(*given))
        found.append(time.perf_counter() - begin)
    return statistics.median(found) * 1e6


def run_time(boards: int, side: int, channels: int, count: int, by_programs: bool, back: bool) -> float:
    """Microseconds for one convolution of a run, forward only, or with its gradients, kernel's included."""
    x, sums, params = arguments(boards, side, channels, count)
    last = drawn(3, *x.shape).astype(x.dtype)
    function = programs if by_programs else layers

    def loss(x: Any, sums: Any, params: Any) -> Any:
        y, _, after = function(x, sums, params, "relu")
        return jnp.sum((y * last).astype(jnp.float32)) + 1e-6 * jnp.sum(after)

    def forward(_: Any, carry: Any) -> Any:
        x, sums = carry
        y, _, after = function(x, sums, params, "relu")
        return y, after

    def both(_: Any, carry: Any) -> Any:
        x, params = carry
        of_x, of_params = jax.grad(loss, (0, 2))(x, sums, params)
        return x + 1e-3 * of_x, jax.tree.map(lambda p, d: p + 1e-9 * d, params, of_params)

    if back:
        return timed(lambda *given: lax.fori_loop(0, LOOPS, both, given), x, params) / LOOPS / count
    return timed(lambda *given: lax.fori_loop(0, LOOPS, forward, given), x, sums) / LOOPS / count


def compare(boards: int, channels: int) -> None:
    flop = 2 * 9 * boards * 81 * channels * channels
    say(f"{boards} boards of 9x9x{channels}: {flop / 700e6:.1f} us for a convolution at 700 TFLOP/s")
    for back in (False, True):
        found = [run_time(boards, 9, channels, 6, by_programs, back) for by_programs in (True, False)]
        what = "forward, backward and the kernel's gradient" if back else "forward"
        say(f"    {what}, for one convolution of six: programs {found[0]:.1f} us, layers {found[1]:.1f}")


def learn(name: str, batch: int, by_programs: bool) -> None:
    game = games.make("go", size=9)
    net = nets.build(nets.spec(name, nets.possible_heads(game)), game, nnx.Rngs(0), dtype="bfloat16")
    settings = train.TrainSettings(batch=batch)
    settings = replace(settings, optimizer=replace(settings.optimizer, kind="muon"))
    with convs.in_training() if by_programs else nullcontext():
        begin, loss = time.time(), 0.0
        take = learning(net, game, settings, rows=20_000, steps=50)
        jax.block_until_ready(take())
        say(f"{name} batch {batch} programs={by_programs}: compiled and first 50 steps in {time.time() - begin:.0f} s")
        found = []
        for _ in range(5):
            begin = time.perf_counter()
            loss = jax.block_until_ready(take())
            found.append((time.perf_counter() - begin) / 50)
    seconds = statistics.median(found)
    rate = f"{seconds * 1e6:,.0f} us a step, {batch / seconds:,.0f} samples/s"
    say(f"{name} batch {batch} programs={by_programs}: {rate}, loss {float(loss):.5f}")


if __name__ == "__main__":
    sys.exit(main())
