"""`tengen export`: networks from what trainers leave, as a part of a run, and networks for other programs."""

import importlib
import shlex
from pathlib import Path
from typing import Any

from tengen import schema, words
from tengen.commands.arguments import Arg, Namespace
from tengen.commands.part import drive, part_arguments
from tengen.errors import TengenError

_TRY = {
    "katago": "katago gtp -model {out} -config gtp.cfg",
    "lc0": "lc0 --weights={out}",
    "lc0-float32": "lc0 --weights={out}",
    "tengen": "{program} play {out}",
    "tengen-int8": "{program} play {out}",
    "onnx": "https://netron.app shows the file; docs/onnx.md has programs in Python and JavaScript",
}
"""What a user may do with the file of each format."""
HELP = "networks for other programs; a part of a run: turn what trainers leave into networks"
ABOUT = """With --format: writes a network, or the newest of a run, for another program. Without: a part of a run that
turns what trainers leave into networks: for the gate, or aside for trainers whose networks do not play. Ends with
Ctrl-C."""
EXAMPLE = (
    "tengen export runs/go9 --format katago go9.bin.gz\ntengen export runs/go9 --format onnx go9.onnx\n"
    "tengen export go9 --base runs/go9"
)
ARGUMENTS = (
    *part_arguments("export what waits, and end"),
    Arg(
        "--format FORMAT OUT",
        "write the network CONFIG to the file OUT; katago: for KataGo and its programs, as OUT.bin.gz; "
        "lc0: for Lc0, as OUT.pb.gz, with 16 bits a weight; lc0-float32: with all bits, for Lc0 0.33 or newer; onnx: "
        "for other languages and frameworks, as OUT.onnx; tengen: for Tengen, in half the size, with its "
        "configuration, as OUT.safetensors; tengen-int8: in a quarter of the size",
    ),
    Arg(
        "--about KEY=TEXT",
        "with --format tengen or tengen-int8: what people should know, such as machine='one H200'; may be repeated",
        repeats=True,
    ),
    Arg("--name NAME", "of one trainer (default: all of them)"),
    Arg("--now", "export the newest checkpoint of the trainer (main unless named), also in mid-epoch, and end"),
)


def run(args: Namespace) -> int:
    if args.format is not None:
        _write(args)
        return 0

    from tengen.run.locks import check_name

    name = None if args.name is None else check_name(args.name)
    args.once = args.once or args.now

    def build(config: Any, base: Any, stop: Any, say: Any) -> Any:
        from tengen.loop.parts.export import ExportPart, submit_checkpoint
        from tengen.run import shipped

        if args.config in shipped.names() and not (base / "train").exists():
            command = f"{words.program()} export {args.config} --format FORMAT OUT"
            say(f"for a file of the network that comes with Tengen: {command}")
        if args.now:
            submit_checkpoint(base, name or "main")
        return ExportPart(config, base, stop, say, name=name)

    return drive(args, build, free=("net", "train"))


def _write(args: Namespace) -> None:
    from tengen.run import networks, shipped

    kind, out = args.format[0], Path(args.format[1])
    if kind not in _TRY:
        raise TengenError(f"--format {kind}: {schema.unknown('format', kind, tuple(_TRY))}")
    program, _, encoding = kind.partition("-")
    if args.about and program != "tengen":
        raise TengenError("--about is for --format tengen and tengen-int8")
    if not out.parent.is_dir():
        raise TengenError(f"{out}: there is no folder {out.parent}; make it first")
    found = networks.find(args.config)
    if program == "tengen":
        about = [[part.strip() for part in text.partition("=")] for text in args.about]
        for text, (key, _, value) in zip(args.about, about, strict=True):
            if not (key and value):
                raise TengenError(f"--about {text}: expected KEY=TEXT, such as machine='one H200'")
        shipped.write(found.path, out, {key: value for key, _, value in about}, "int8" if encoding else "bfloat16")
    else:
        exchange = importlib.import_module(f"tengen.interop.{program}.exchange")
        for note in exchange.export(found.path, args.name or found.name, out, *filter(None, [encoding])):
            print(f"note: {note}")
    print(f"{found.name} -> {out}")
    print(f"try it: {_TRY[kind].format(out=shlex.quote(str(out)), program=words.program())}")
