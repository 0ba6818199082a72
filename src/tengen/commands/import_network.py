"""`tengen import`: networks of other programs."""

import json
import shlex
from pathlib import Path

from tengen.commands.arguments import Arg, Namespace
from tengen.errors import TengenError
from tengen.words import program

HELP = "use a network of KataGo or Lc0"
ABOUT = """Turns a network of KataGo or Lc0 into one of Tengen, which then works wherever a network is expected: in
gtp, uci, analyze, match, and as net.start_from of a run (for KataGo's, one with observation: katago)."""
EXAMPLE = "tengen import katago g170-b6c96.bin.gz nets/g170-b6c96 --size 9\ntengen import lc0 weights.pb.gz nets/t60"
ARGUMENTS = (
    Arg("FORMAT", "katago: KataGo's .bin.gz; lc0: Lc0's .pb.gz", choices=("katago", "lc0")),
    Arg("FILE", "the network's file", Path),
    Arg("NET", "the folder to write", Path),
    Arg("--size N", "katago: points along a side of the board (19)", int),
    Arg("--komi K", "katago: points that White gets (7)", float),
    Arg("--ko RULE", "katago: simple, positional or situational (positional)"),
)


def run(args: Namespace) -> None:
    from tengen.config.source import RUN_FILE
    from tengen.nets import saving

    if (args.net / RUN_FILE).exists():
        raise TengenError(f"{args.net}: is the folder of a run; choose another one, such as nets/{args.file.stem}")
    if (found := saving.file_in(args.net)).exists():
        raise TengenError(f"{found}: is a network already; remove it, or choose another folder")
    options = {key: value for key in ("size", "komi", "ko") if (value := getattr(args, key)) is not None}
    if args.format == "katago":
        from tengen.interop.katago.exchange import import_network
    else:
        from tengen.interop.lc0.exchange import import_network

        if options:
            raise TengenError(f"--{next(iter(options))} is for networks of KataGo")
    description = import_network(args.file, args.net, options)
    print(description)
    print(f"the network: {args.net}")
    print(f"try it:      {shlex.join([program(), 'play', str(args.net)])}")
    if args.format == "katago":
        print(f"go on:       {_to_go_on(args.net)}")


def _to_go_on(net: Path) -> str:
    from tengen import nets
    from tengen.nets import saving

    saved = saving.read(net)
    plain = saved.spec.to_dict()
    del plain["heads"]
    name = nets.name_of(saved.spec)
    named = f"net.name={name}" if name else f"net.name=null --set {shlex.quote(f'net.spec={json.dumps(plain)}')}"
    size = saved.options["size"]
    rules = "go9" if size == 9 else "go19" if size == 19 else f"go19 --set game.size={size}"
    return (
        f"{program()} run {rules} --base runs/NAME --set game.observation=katago --set {named} "
        f"--set net.start_from={shlex.quote(str(net))}"
    )
