"""Tries the programs of nets/convs.cu on a Hopper GPU: python gpu_try.py [check] [time] [variants] [learn] [learn128].

check     F, D and a learner's gradients against the plain layers
time      F, D, whole chains of blocks (forward and backward), by programs and by cuDNN and XLA
variants  F and D of b6c96 with other chunks and lags
learn     a step of the learner (Muon, 2,048), with and without programs; learn128: b10c128
Without arguments: check time learn.
"""

import faulthandler
import os
import statistics
import sys
import threading
import time

faulthandler.dump_traceback_later(int(os.environ.get("TRY_SECONDS", "140")), exit=True)
BEGIN = time.time()
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "src")]

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax

from tengen import games, gpu, nets, train
from tengen.bench.learner import random_rows
from tengen.data.format.rows import RowFormat
from tengen.data.store import buffer
from tengen.nets import convs, plans
from tengen.nets.layers import activate, convolve
from tengen.train.alpha_zero import from_buffer
from dataclasses import replace

LOOPS = 40


def say(*words):
    print(f"[{time.time() - BEGIN:5.1f}]", *words, flush=True)


def normal(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed + sum(shape)).normal(size=shape).astype(np.float32))


def drawn(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape, jnp.bfloat16)


def plain(x, scale, shift, kernel, added, activation):
    a = activate(x.astype(jnp.float32) * scale + shift, activation).astype(x.dtype)
    y = convolve(a, kernel.astype(x.dtype))
    y = y if added is None else y + added
    wide = y.astype(jnp.float32)
    return y, jnp.stack([wide.sum((0, 1, 2)), jnp.square(wide).sum((0, 1, 2))]), x


def check(boards, side, channels, activation, adds):
    shape = boards, side, side, channels
    x, added, dy, other = (drawn(k, *shape) for k in range(4))
    arguments = x, 1 + 0.2 * normal(channels), 0.3 * normal(channels, seed=1), normal(3, 3, channels, channels) / 30, added if adds else None
    cotangents = dy, 0.1 * normal(2, channels), other

    def run(function):
        def all_of(*given):
            results, back = jax.vjp(function, *given)
            return *results, *back(cotangents)

        return jax.jit(all_of)(*arguments)

    program = lambda *given: convs.convolved(*given, activation, True)
    found, again = run(program), run(program)
    expected = run(lambda *given: plain(*given, activation))
    same = all(np.array_equal(np.asarray(a, np.float32), np.asarray(b, np.float32)) for a, b in zip(found, again) if a is not None)
    words = []
    for name, a, b in zip(("y", "sums", "x", "dx", "dscale", "dshift", "dkernel", "dadded"), found, expected):
        if a is not None:
            a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
            e = np.abs(a - b) / b.std()
            words.append(f"{name} {e.mean():.4f}/{e.max():.3f}")
    say(f"check {boards} x {side}x{side}x{channels} {activation} added={adds}, mean/max error in standard deviations; twice the same: {same}")
    say("   ", ", ".join(words))


def timed(function, *arguments):
    """Microseconds of a call of a jitted function."""
    run = jax.jit(function)
    jax.block_until_ready(run(*arguments))
    found = []
    for _ in range(5):
        begin = time.perf_counter()
        jax.block_until_ready(run(*arguments))
        found.append(time.perf_counter() - begin)
    return statistics.median(found) * 1e6


def forward_time(boards, side, channels, adds, layers=False):
    """A chain of convolutions, each with the norm of the one before."""
    x, added = drawn(0, boards, side, side, channels), drawn(1, boards, side, side, channels) if adds else None
    kernel = normal(3, 3, channels, channels) / 30
    n = boards * side * side

    def one(_, carry):
        x, sums = carry
        mean = sums[0] / n
        scale = lax.rsqrt(jnp.maximum(sums[1] / n - mean * mean, 0) + 1e-4)
        function = plain if layers else (lambda *given: convs.convolved(*given, False))
        y, sums, _ = function(x, scale, -mean * scale, kernel, added, "relu")
        return y, sums

    return timed(lambda x: lax.fori_loop(0, LOOPS, one, (x, jnp.stack([jnp.zeros(channels), jnp.full(channels, float(n))]))), x) / LOOPS


def backward_time(boards, side, channels, adds):
    x, y, dy, added = (drawn(k, boards, side, side, channels) for k in range(4))
    kernel, numbers = normal(3, 3, channels, channels) / 30, 0.3 * normal(4, channels)

    def one(_, carry):
        dy, numbers, g = carry
        g, dx, sums = convs._call("backward", [x, y, dy], added if adds else None, kernel, numbers, "relu")
        return dx, numbers.at[2:].set(sums * 1e-9), g

    return timed(lambda dy: lax.fori_loop(0, LOOPS, one, (dy, numbers, dy)), dy) / LOOPS


def kernel_time(boards, side, channels):
    a, g = (drawn(k, boards, side, side, channels) for k in range(2))

    def one(_, carry):
        found = jax.vjp(lambda k: convolve(a, k), carry[1])[1](carry[0])[0]
        return carry[0] + 0 * found[0, 0, 0, 0], found

    add = timed(lambda g: lax.fori_loop(0, LOOPS, lambda _, g: g + g[0, 0, 0, 0] * 0, g), g) / LOOPS
    return timed(lambda g: lax.fori_loop(0, LOOPS, one, (g, jnp.zeros((3, 3, channels, channels), jnp.bfloat16))), g) / LOOPS - add


def chain_time(boards, side, channels, blocks, programs):
    """Forward and backward of plain residual blocks, for one of its convolutions."""
    x, last = drawn(0, boards, side, side, channels), drawn(1, boards, side, side, channels)
    kernels = normal(blocks, 2, 3, 3, channels, channels) / 30
    n = boards * side * side

    def loss(x, kernels):
        def affine(sums):
            mean = sums[0] / n
            scale = lax.rsqrt(jnp.maximum(sums[1] / n - mean * mean, 0) + 1e-4)
            return scale, -mean * scale

        wide = x.astype(jnp.float32)
        sums = jnp.stack([wide.sum((0, 1, 2)), jnp.square(wide).sum((0, 1, 2))])
        for b in range(blocks):
            if programs:
                y, inner, again = convs.convolved(x, *affine(sums), kernels[b, 0], None, "relu", True)
                x, sums, _ = convs.convolved(y, *affine(inner), kernels[b, 1], again, "relu", False)
            else:
                y, inner, _ = plain(x, *affine(sums), kernels[b, 0], None, "relu")
                x, sums, _ = plain(y, *affine(inner), kernels[b, 1], x, "relu")
        return jnp.sum((x * last).astype(jnp.float32)) + jnp.sum(sums) * 1e-6

    def one(_, carry):
        x, kernels = carry
        dx, dk = jax.grad(loss, (0, 1))(x, kernels)
        return x + 1e-3 * dx, kernels + 1e-9 * dk

    return timed(lambda *given: lax.fori_loop(0, 10, one, given), x, kernels) / 10 / (2 * blocks)


def learner_of(name, batch, programs):
    game = games.make("go", size=9)
    net = nets.build(nets.spec(name, nets.possible_heads(game)), game, nnx.Rngs(0), dtype="bfloat16")
    settings = train.TrainSettings(batch=batch)
    settings = replace(settings, optimizer=replace(settings.optimizer, kind="muon"))
    learner = train.Learner(net, game, settings)
    assert not programs or learner._alone
    learner._alone = programs
    form, rows = RowFormat.of(game, net.spec.heads), 20_000
    filled = buffer.make(form, rows)
    filled = filled._replace(rows=random_rows(form, rows), filled=filled.filled + rows)
    data = jax.device_put((filled, rows), learner.everywhere)
    operations = 3 * nets.operations(net, game)
    state, key = learner.start(net), jax.random.key(0)
    steps = 50

    def take():
        nonlocal state
        state, figures = learner.many(state, key, from_buffer, data, steps)
        return jax.block_until_ready(figures)

    return take, steps, operations * batch


def learn(name, batch):
    made, errors = {}, {}

    def prepare(programs):
        try:
            take, steps, operations = learner_of(name, batch, programs)
            begin = time.time()
            figures = take()
            made[programs] = take, steps, operations
            say(f"{name} {batch} programs={programs}: compiled and first {steps} steps in {time.time() - begin:.0f} s; "
                f"loss {float(figures['loss']):.5f}, gradient {float(figures['gradient']):.5f}, skipped {float(figures['skipped']):.2f}")
        except Exception as error:
            import traceback
            traceback.print_exc()
            errors[programs] = error

    threads = [threading.Thread(target=prepare, args=(programs,), daemon=True) for programs in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for programs, (take, steps, operations) in made.items():
        found = []
        for _ in range(5):
            begin = time.perf_counter()
            figures = take()
            found.append((time.perf_counter() - begin) / steps)
        seconds = statistics.median(found)
        say(f"{name} batch {batch} programs={programs}: {seconds * 1e6:,.0f} us a step, {batch / seconds:,.0f} samples/s, "
            f"{operations / seconds / 1e12:.0f} TFLOP/s; loss {float(figures['loss']):.5f}")


def main():
    wanted = sys.argv[1:] or ["check", "time", "learn"]
    say(jax.devices(), "hopper:", gpu.is_hopper(), wanted)
    if "check" in wanted:
        check(1201, 9, 96, "relu", True)
        check(1201, 9, 96, "mish", False)
        check(1201, 9, 128, "relu", True)
        check(301, 19, 128, "relu", True)
    if "time" in wanted:
        for side, channels, boards in ((9, 96, 1024), (9, 96, 2048), (9, 128, 2048)):
            flop = 2 * 9 * boards * side * side * channels * channels
            say(f"{boards} boards, {side}x{side}x{channels}, us: F {forward_time(boards, side, channels, False):.1f}, "
                f"F added {forward_time(boards, side, channels, True):.1f}, D {backward_time(boards, side, channels, False):.1f}, "
                f"D added {backward_time(boards, side, channels, True):.1f}; cuDNN + XLA forward added "
                f"{forward_time(boards, side, channels, True, layers=True):.1f}, gradient of the kernel {kernel_time(boards, side, channels):.1f}; "
                f"at 700 TFLOP/s: {flop / 700e6:.1f}")
        for channels, boards in ((96, 2048), (128, 2048)):
            found = [chain_time(boards, 9, channels, 3, programs) for programs in (True, False)]
            say(f"forward and backward of one convolution in a chain, {channels}, {boards} boards: programs {found[0]:.1f} us, layers {found[1]:.1f}")
    if "variants" in wanted:
        defines = plans.Plan.defines
        for chunk, lag, eager in ((6, 4, True), (6, 4, False), (4, 4, True), (9, 4, True), (6, 2, True), (6, 5, True), (6, 6, True)):
            convs._CHUNK, convs._EAGER = chunk, eager
            plans.Plan.defines = lambda self: tuple((name, str(lag) if name == "LAG" else value) for name, value in defines(self))
            say(f"chunk {chunk}, lag {lag}, eager {eager}, 2048 boards of 96: F added {forward_time(2048, 9, 96, True):.1f}, "
                f"D added {backward_time(2048, 9, 96, True):.1f}")
        plans.Plan.defines = defines
    if "learn" in wanted:
        learn("b6c96", 2048)
    if "learn128" in wanted:
        learn("b10c128", 2048)
    say("done")


main()
