"""`tengen estimate`: the cost of a run on this machine, after a minute of measuring."""

import sys

from tengen import config as configuration
from tengen.commands.arguments import CONFIG, Arg, Namespace, amount, whole
from tengen.errors import OptionError

HELP = "how long a run will take here, and how much memory"
ABOUT = """Measures the parts of a run on this machine for about a minute, besides compiling them, and says how long the
whole run would take and how much memory it needs. Nothing is written."""
EXAMPLE = "tengen estimate go9 --seconds 30\ntengen estimate go9 --nodes 8 --gpus-per-node 4"
ARGUMENTS = (
    *CONFIG,
    Arg("--seconds S", "of measuring, besides compiling (%(default)g)", amount("seconds", 86_400), 60.0),
    Arg("--nodes N", "also estimate a cluster of that many machines", whole(1, 100_000)),
    Arg(
        "--gpus-per-node G",
        "of that cluster, each like this device (1; without a GPU: none, and nodes like this machine)",
        whole(1, 100_000),
    ),
)


def run(args: Namespace) -> None:
    config = configuration.load(args.config, args.overrides)

    import jax

    from tengen.jax_setup import device_memory, explaining_memory, keep_compiled
    from tengen.loop import estimate
    from tengen.loop.components import Components

    keep_compiled()
    if args.gpus_per_node is not None and args.nodes is None:
        raise OptionError("--gpus-per-node: is for a cluster; give the number of machines with --nodes")
    plan = args.nodes and estimate.ClusterPlan.of(config.cluster, args.nodes, args.gpus_per_node, jax.default_backend())
    with explaining_memory():
        parts = Components(config)
        print(f"{config.run.name} on {jax.devices()[0].device_kind}\n\nmemory of the device")
        print("\n".join(estimate.describe_memory(parts.memory(), device_memory())))
        print(estimate.describe_disk(parts.form.row_bytes) + "\n", flush=True)
        parts.check_memory()
        # Progress goes to standard error, to keep it out of results in a file or pipe.
        show = lambda text: print(f"{text} ...", file=sys.stderr, flush=True)  # noqa: E731
        found = estimate.measure(parts, config, args.seconds, show)
    print("\n".join(estimate.describe(found, config)))
    if plan:
        print("\non a cluster")
        print("\n".join(estimate.describe_cluster(found, plan)))
