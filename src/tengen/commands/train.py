"""`tengen train`: learn from the newest shuffle, as a part of a run."""

import os
from typing import Any

from tengen.commands.arguments import Arg, Namespace, positive
from tengen.commands.part import drive, load, part_arguments, say
from tengen.errors import OptionError
from tengen.words import program

HELP = "a part of a run: learn from its newest shuffle"
ABOUT = """Learn from the newest shuffle of a run, as much as its rows allow, and leave a network for the export every
few epochs. Goes on where the trainer of that name stopped. Ends at goal.steps, or with Ctrl-C. If all rows of the run
come from `tengen data from-games` or from KataGo's self-play, it shuffles and exports, too."""
EXAMPLE = "tengen train go9 --base runs/go9"
ARGUMENTS = (
    *part_arguments("end when there is nothing to learn from for now"),
    Arg("--name NAME", "of the trainer; several may train in one run (default: main)", default="main"),
    Arg(
        "--role ROLE",
        "main: its networks go to the gate; extra: they are exported aside and do not play; trainonly: none are "
        "(default: main for the trainer main, extra for others)",
        choices=("main", "extra", "trainonly"),
    ),
    Arg("--max-epochs N", "end when this process has trained N epochs", positive),
    Arg("--stop-when-limited", "end when no more samples are allowed, instead of waiting"),
    "one training on several hosts (docs/devices.md)",
    Arg("--coordinator HOST:PORT", "of process 0: its host, and a port that is free there"),
    Arg("--processes N", "how many processes there are", positive),
    Arg("--process I", "the number of this one; only 0 reads and writes files", int),
)


def run(args: Namespace) -> int:
    missing = [args.coordinator, args.processes, args.process].count(None)
    if missing in (1, 2):
        raise OptionError("--coordinator, --processes and --process: give all of them, or none")
    return _train(args) if missing else _on_hosts(args)


def _on_hosts(args: Namespace) -> int:
    import jax

    from tengen.jax_setup import keep_compiled
    from tengen.run.signals import Stopping
    from tengen.train import hosts
    from tengen.train.following import follow

    hosts.connect(args.coordinator, args.processes, args.process)
    keep_compiled()
    if args.process:
        with Stopping(say) as stopping:
            why = follow(lambda: stopping.asked, say)
        say(f"process 0 has ended{f': {why}' if why else ''}")
        jax.distributed.shutdown()
        return stopping.code
    beat, why = hosts.Heartbeat(), ""
    try:
        code = _train(args, beat)
        if beat.asked:
            say("another process was asked to stop: everything is written")
        return code
    except Exception as error:
        why = str(error).partition("\n")[0]
        raise
    finally:
        hosts.announce({"do": "end", "why": why})
        jax.distributed.shutdown()


def _train(args: Namespace, beat: Any = None) -> int:
    """Learn; `beat` is the heartbeat of several processes."""
    from tengen.config.source import RUN_FILE
    from tengen.run.children import PARENT
    from tengen.run.locks import check_name

    name = check_name(args.name)
    role = args.role or ("main" if name == "main" else "extra")
    alone = PARENT not in os.environ  # the driver of all parts ends them itself

    def build(config: Any, base: Any, stop: Any, say: Any) -> Any:
        from functools import partial

        from tengen.config import provenance
        from tengen.loop.parts import supervised
        from tengen.loop.parts.train import TrainPart
        from tengen.run import config_file
        from tengen.schema import to_dict
        from tengen.train.hosts import announce

        if beat is not None:
            import jax

            config.train.check_devices(jax.device_count())
        config_file.write(config, base / "train" / name, provenance.lines(), say)
        if beat is not None:
            announce({"do": "begin", "config": to_dict(config)})
        limits = {"max_epochs": args.max_epochs, "end_at_goal": alone}
        train = partial(TrainPart, config, base, stop, say, name=name, role=role, **limits)
        if supervised.is_supervised(base):
            say("all rows are of games that others played, so this trainer also shuffles and exports")
            return supervised.SupervisedPart(config, base, stop, say, train, ends=args.stop_when_limited)
        return train(end_when_limited=args.stop_when_limited)

    # Trainers besides the main one may have networks of other sizes, and other ways of learning.
    free = ("net.dtype",) if name == "main" else ("net", "train")
    config, base = load(args)
    if name != "main" and not (base / RUN_FILE).exists():
        raise OptionError(
            f"{base}: there is no run here that trainer {name} could join; start self-play or the main trainer first"
        )
    from tengen.run.diverged import advising

    # The settings of other trainers are in their own folders: `tengen set RUN/train/NAME ...`.
    watched = "" if name == "main" else f"train/{name}"
    more = {} if beat is None else {"stop": beat.look}
    words = [program(), "train", args.config, "--base", str(base)]
    words += [] if name == "main" else ["--name", name]
    words += [] if args.role is None else ["--role", args.role]
    with advising(config, base / "train" / name, words, args.overrides):
        return drive(args, build, only=f"train-{name}", free=free, watched=watched, **more)
