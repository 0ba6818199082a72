"""`tengen import`: networks of other programs."""

import argparse
from pathlib import Path
from typing import Any

_ABOUT = """Turns a network of KataGo into one of Tengen, which then works wherever a network is expected: in gtp,
analyze, match, and as net.start_from of a run with observation: katago."""


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "import",
        help="use a network of KataGo",
        description=_ABOUT,
        example="tengen import katago g170-b6c96.bin.gz nets/g170-b6c96 --size 9",
    )
    parser.add_argument("format", metavar="FORMAT", choices=("katago",), help="katago: KataGo's .bin.gz")
    parser.add_argument("file", metavar="FILE", type=Path, help="the network's file")
    parser.add_argument("net", metavar="NET", type=Path, help="the folder to write")
    parser.add_argument("--size", type=int, metavar="N", help="points along a side of the board (19)")
    parser.add_argument("--komi", type=float, metavar="K", help="points that White gets (7)")
    parser.add_argument("--ko", metavar="RULE", help="simple, positional or situational (positional)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read the file and write the network."""
    from tengen.interop.katago import exchange
    from tengen.nets import saving

    options = {key: value for key in ("size", "komi", "ko") if (value := getattr(args, key)) is not None}
    model, file = exchange.import_network(args.file, args.net, options)
    print(exchange.describe(model, saving.read(file).make_game()))
    print(f"the network: {args.net}")
    print(f"try it:      tengen play {args.net}")
    return 0
