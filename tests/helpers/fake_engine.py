"""An engine that behaves, or misbehaves, as it is told: `python fake.py gtp|uci BEHAVIOUR [FILE]`.

As a GTP engine it passes, as a UCI engine it opens with its king's pawn, whatever the position is. With a FILE, it adds
a line with its process number there when it starts, and misbehaves only if the file had fewer than two lines before.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

protocol, behaviour = sys.argv[1:3]
if len(sys.argv) > 3:
    log = Path(sys.argv[3])
    starts = len(log.read_text().splitlines()) if log.exists() else 0
    with log.open("a") as file:
        file.write(f"{os.getpid()}\n")
    if starts >= 2:
        behaviour = "fine"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def think() -> str:
    """Its move, unless it misbehaves now."""
    if behaviour == "crash":
        sys.stderr.write("first line\nTraceback: boom\n")
        sys.exit(3)
    if behaviour == "killed":
        os.kill(os.getpid(), 9)
    if behaviour == "hang":
        time.sleep(1000)
    if behaviour == "flood":
        sys.stderr.write("noise " * 500_000)
        sys.stderr.flush()
    if behaviour == "endless":
        while True:
            sys.stdout.write("x" * 10_000 + ("\n" if protocol == "uci" else ""))
    if behaviour == "garbage":
        say("hello there")
    usual = "pass" if protocol == "gtp" else "e2e4"
    strange = {"illegal": "A1" if protocol == "gtp" else "a1a1", "nonsense": "banana", "resign": "resign"}
    return strange.get(behaviour, usual)


def gtp() -> None:
    for line in sys.stdin:
        number, command, *_ = line.split()
        if behaviour == "children" and command == "name":
            subprocess.Popen(["sleep", "1000"])  # which keeps the pipes
        if behaviour == "mute":
            time.sleep(1000)
        answer = {
            "name": "Fake",
            "version": "1",
            "protocol_version": "1" if behaviour == "old" else "2",
            "list_commands": "boardsize\nclear_board\nkomi\nplay\ngenmove\nfinal_score\ntime_settings\nquit",
            "final_score": "B+99.5",
        }.get(command, "")
        if command == "genmove":
            answer = think()
        refused = (behaviour == "refuse" and command == "play") or (behaviour == "small" and command == "boardsize")
        say(f"{'?' if refused else '='}{number} {'no such thing' if refused else answer}\n")
        if command == "quit":
            return


def uci() -> None:
    for line in sys.stdin:
        words = line.split()
        if behaviour == "mute":
            time.sleep(1000)
        if words[0] == "uci":
            say("id name Fake 1\noption name Skill Level type spin default 20 min 0 max 20\nuciok")
        elif words[0] == "isready":
            say("readyok")
        elif words[0] == "go":
            say(f"info string {line.strip()}")
            say(f"bestmove {think()} ponder e7e5")
        elif words[0] == "quit":
            return


if behaviour == "stillborn":
    sys.stderr.write("no licence\n")
    sys.exit(1)
gtp() if protocol == "gtp" else uci()
