"""What a GPU is asked to do: compiles self-play or learning for an H200, on a machine without one, and counts launches.

    pip install --target cuda --no-deps jax-cuda13-plugin==VERSION jax-cuda13-pjrt==VERSION     (that of jax)
    PYTHONPATH=cuda python benchmarks/launches.py go9
    PYTHONPATH=cuda python benchmarks/launches.py go9 learn --set train.batch=1024 --body 'region_0*'

For each loop of the program: how often its body runs, if that is known, and how many kernels of which kind the body
launches. After each turn of a loop whose length is not known, the GPU waits for the host, which asks whether there is
another one. That, and many launches of 2 to 3 us each, cost time that no profile of a single kernel shows. `--body`
lists the launches of some bodies, `--out` keeps the whole program.

Nothing runs, so nothing is tuned: products and convolutions are those that XLA takes without trying them out. It needs
`ptxas`, which is part of CUDA.
"""

import argparse
import fnmatch
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (
    f"--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false {os.environ.get('XLA_FLAGS', '')}"
)

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tengen import config
from tengen.ahead import shapes_on
from tengen.data.format.rows import RowFormat
from tengen.data.store import buffer
from tengen.errors import TengenError
from tengen.gpu import program
from tengen.selfplay import driver
from tengen.train.alpha_zero import AlphaZeroConfig, AlphaZeroTrainer, from_buffer

PROCESSORS = 132
H200 = f"""
gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048 fpus_per_core: 128
  shared_memory_per_block: 49152 shared_memory_per_core: 233472 shared_memory_per_block_optin: 232448
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 core_count: {PROCESSORS}
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 150000000000
  cuda_compute_capability {{ major: 9 minor: 0 }}
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 12 patch: 0 }}
device_description_str: "NVIDIA H200"
"""
NO_KERNEL = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id"}
LOOPS = ("while", "conditional", "call")


class Launch(NamedTuple):
    """An operation of a loop's body."""

    kind: str
    name: str
    shape: str
    text: str

    @property
    def target(self) -> str:
        """Its kind, with what a custom call calls."""
        found = re.search(r'custom_call_target="([^"]+)"', self.text)
        return {"triton_kernel_call_ffi": "program of Tengen"}.get(found[1], found[1]) if found else self.kind


def device() -> Any:
    """An H200 that programs can be compiled for."""
    try:
        return topologies.get_topology_desc("1x1x1", "cuda", target_config=H200, topology="1x1x1").devices[0]
    except NotImplementedError:
        version = jax.__version__
        raise TengenError(
            f"no plugin of JAX for CUDA 13: pip install --target cuda --no-deps jax-cuda13-plugin=={version} "
            f"jax-cuda13-pjrt=={version}, and start this with PYTHONPATH=cuda"
        ) from None


def pretend() -> None:
    """From now on, Tengen builds what it would build on that GPU."""
    setattr(program, "_capabilities", lambda: {program.HOPPER})  # noqa: B010
    setattr(program, "_processors", lambda: PROCESSORS)  # noqa: B010
    setattr(jax, "default_backend", lambda: "gpu")  # noqa: B010
    setattr(driver, "lane_devices", lambda count: jax.local_devices()[:1])  # noqa: B010


def playing(chosen: config.Config, place: Any) -> Any:
    """A call to the games of the first lane, lowered."""
    plays = driver.SelfplayDriver(chosen)
    selfplay = plays.lanes.lanes[0].selfplay
    print(f"{selfplay.settings.games:,} games, {selfplay.stride} simulations in a phase")
    actor = jax.eval_shape(selfplay._start, jax.eval_shape(lambda: jax.random.key(0)))
    numbers = jax.eval_shape(lambda: (jnp.int32(0), jnp.uint32(0)))
    arguments = shapes_on(jax.sharding.SingleDeviceSharding(place), (plays.weight_shapes, actor, *numbers))
    return jax.jit(selfplay._play, donate_argnums=1).trace(*arguments).lower()


def learning(chosen: config.Config, place: Any) -> Any:
    """Steps of the learner on rows of the buffer, lowered."""
    trainer = AlphaZeroTrainer(AlphaZeroConfig.of(chosen))
    learner, game = trainer.learner, chosen.game.make()
    mesh = Mesh(np.array([place]), ("batch",))
    learner.everywhere, learner.split = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("batch",)))
    learner._loops = True
    form = RowFormat.of(game, chosen.net.heads)
    data = jax.eval_shape(lambda: (buffer.make(form, chosen.data.ring_rows), jnp.int32(0)))
    given = (trainer.state, learner._numbers, jax.eval_shape(lambda: jax.random.key(0)), data)
    state, learner._numbers, key, data = shapes_on(learner.everywhere, jax.eval_shape(lambda *each: each, *given))
    print(f"batches of {chosen.train.batch:,}")
    return learner.programs(state, key, from_buffer, data)[0]()


def computations(text: str) -> dict[str, list[Launch]]:
    """The launches of each computation of a compiled program."""
    found: dict[str, list[Launch]] = {}
    here: list[Launch] = []
    for line in text.splitlines():
        if line.endswith("{") and line.startswith(("%", "ENTRY")):
            here = found[line.removeprefix("ENTRY ").split()[0].lstrip("%")] = []
        elif match := re.match(r"\s+(?:ROOT )?%([\w.\-]+) = (.*?) ([\w\-]+)\(", line):
            name, shape, kind = match.groups()
            if kind not in NO_KERNEL and not re.search(r"\[(\d+,)*0[,\]]", shape.split("{")[0]):
                here.append(Launch(kind, name, shape, line.strip()))
    return found


def loops(found: dict[str, list[Launch]]) -> Iterator[tuple[str, str, str]]:
    """Each loop: the computation that it is in, its body, and how often that runs."""
    for place, launches in found.items():
        for launch in launches:
            if launch.kind == "while" and (body := re.search(r"body=%?([\w.\-]+)", launch.text)):
                times = re.search(r'known_trip_count":\{"n":"(\d+)"', launch.text)
                yield place, body[1], times[1] if times else "? (the host is asked)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("part", nargs="?", choices=("play", "learn"), default="play")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--body", default="", help="list the launches of the bodies whose names match")
    parser.add_argument("--out", type=Path, help="a file for the compiled program")
    args = parser.parse_args()
    try:
        chosen, place = config.load(args.config, args.set), device()
    except TengenError as error:
        print(error, file=sys.stderr)
        return 2
    pretend()
    lowered = playing(chosen, place) if args.part == "play" else learning(chosen, place)
    text = lowered.compile().as_text()
    if args.out:
        args.out.write_text(text)
    found = computations(text)
    for place_of, body, times in loops(found):
        launches = [launch for launch in found[body] if launch.kind not in LOOPS]
        kinds = Counter(launch.target for launch in launches)
        print(f"\n{body}, in {place_of}: {times} times {sum(kinds.values())} launches")
        print("  " + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
        if args.body and fnmatch.fnmatch(body, args.body):
            for launch in launches:
                about = re.search(r'op_name="([^"]*)"', launch.text)
                print(f"  {launch.target:20} {launch.shape[:70]:70} {about[1][-60:] if about else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
