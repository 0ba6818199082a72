"""`tengen run`: from random play to a strong network."""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tengen import config as configuration
from tengen.commands.arguments import BASE, CONFIG, Arg, Namespace
from tengen.errors import OptionError

if TYPE_CHECKING:
    from tengen.loop.launching import RunRequest

HELP = "self-play and learning, from nothing or from where a run stopped"
ABOUT = """Trains a network by self-play until the goal of the configuration is reached. Ctrl-C stops the run after
everything is written, and the same command goes on where it stopped."""
EXAMPLE = "tengen run tic_tac_toe\ntengen run go9 --base runs/go9 --set goal.minutes=30"
ARGUMENTS = (
    *CONFIG,
    BASE,
    Arg(
        "--mode MODE",
        "fused: all on one device, in memory (the default); sync: the parts in turn, in one process; "
        "async: each part as a process; cluster: self-play on many machines, by Ray (docs/cluster.md). "
        "If CONFIG is a run, the default is the mode that it was last run in",
        choices=("fused", "sync", "async", "cluster"),
    ),
    Arg("--parts PARTS", "async: only these, as selfplay,gate; others may run elsewhere (default: all)"),
    Arg(
        "--address HOST:PORT",
        "cluster: the Ray cluster, or auto for that of this machine (default: Ray is started here)",
    ),
    Arg("--tensorboard", "also write TensorBoard files, to RUN/logs"),
    Arg(
        "--progress HOW",
        "auto: a panel on a terminal, elsewhere plain lines (the default); jsonl: lines of the daemon's protocol "
        "on standard output, all else on standard error",
        default="auto",
        choices=("auto", "jsonl"),
    ),
    Arg("--tui", "show the run in the dashboard (docs/tui.md)"),
)


def run(args: Namespace) -> int:
    began = time.monotonic()
    if args.tui and args.progress != "auto":
        raise OptionError("--tui: the dashboard chooses the progress that it needs; leave out --progress")
    config = configuration.load_any(args.config, args.overrides)
    base = configuration.base_of(args.config, config.run.name, args.base)
    mode = args.mode or _last_mode(args.config)
    if args.parts is not None and mode != "async":
        raise OptionError("--parts: only --mode async has parts to choose from")
    if args.address is not None and mode != "cluster":
        raise OptionError("--address: only --mode cluster needs one")
    if isinstance(config, configuration.TrainerConfig) and mode != "fused":
        raise OptionError(f"--mode {mode}: a training of roles ({args.config}) runs in one process; leave it out")
    from tengen.loop.launching import RunRequest, launch

    jsonl, overrides = args.progress == "jsonl", tuple(args.overrides)
    request = RunRequest(config, base, mode, args.parts, args.tensorboard, jsonl, overrides, began, args.address)
    if args.tui:
        return _dashboard(args, request)
    advise = partial(_advise, config)
    return _on_cluster(request, advise) if mode == "cluster" else launch(request, advise)


def _on_cluster(request: "RunRequest", advise: Any) -> int:
    """Everything that could be wrong with the cluster is an error before there is a run directory."""
    from tengen.cluster.connection import connected, described
    from tengen.jax_setup import check_device_elsewhere
    from tengen.loop.launching import launch
    from tengen.run import config_file

    check_device_elsewhere()
    config: Any = config_file.settled(request.config, request.base, request.overrides)[0]
    with connected(request.address, config.cluster) as cluster:

        def make(request: "RunRequest", shown: Any) -> Any:
            from tengen.cluster.run import ClusterRun

            shown.say(described(cluster))
            return ClusterRun(request.config, request.base, shown, cluster=cluster, **request.options)

        return launch(request, advise, make)


def _last_mode(config: str) -> str:
    """How the run in the directory `config` was last run; fused if it is no run, or a new one."""
    from tengen.run import metrics

    run = configuration.run_of(config)
    return "fused" if run is None else metrics.last_mode(run / metrics.NAME)


def _advise(config: Any, say: Callable[[str], None], backend: Callable[[], str]) -> None:
    from tengen.cores import cores
    from tengen.loop import estimate

    count = len(cores())
    if isinstance(config, configuration.Config) and estimate.is_too_much(config, count) and backend() == "cpu":
        shipped = ((name, configuration.load_any(name)) for name in configuration.shipped())
        known = [(name, other) for name, other in shipped if isinstance(other, configuration.Config)]
        say(estimate.advice(config, count, known))


def _dashboard(args: Namespace, request: "RunRequest") -> int:
    from tengen.commands.tui import show
    from tengen.monitor.dashboard.client import ChildClient

    words = [sys.executable, "-m", "tengen", *request.command(args.config), "--progress", "jsonl"]
    words += [f"--set={each}" for each in args.overrides] + ["--tensorboard"] * args.tensorboard
    return show(ChildClient(words, "the run", orders=False), request.config.run.name)
