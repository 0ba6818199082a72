"""`tengen match` as a person uses it."""

import functools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from flax import nnx

from tengen import games, nets
from tengen import match as arena
from tengen.commands import main
from tengen.data.records.moves import replay
from tengen.data.records.records import load_records
from tengen.match import players
from tengen.nets import saving
from tests.helpers.foreign_engines import GNUGO, STOCKFISH, fake
from tests.helpers.patience import LONG, eventually

MAKE = functools.cache(games.make)
GO = ["--game", "go", "--set", "game.size=5", "--set", "game.max_moves=60"]


@pytest.fixture(autouse=True)
def one_game(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled for a game is used again by the next command."""
    monkeypatch.setattr(games, "make", MAKE)


def match(*words: object) -> int:
    return main(["match", *map(str, words)])


def lines(folder: Path) -> list[bytes]:
    path = folder / "games.jsonl"
    return path.read_bytes().splitlines() if path.exists() else []


def test_players_of_ours_in_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, figures = tmp_path / "m", tmp_path / "figures" / "m.json"
    command = ["mcts:4", "random", "--game", "tic_tac_toe", "--games", 10, "--batch", 4, "--out", out]
    assert match(*command, "--json", figures) == 0
    text = capsys.readouterr().out
    assert f"mcts:4 - random: 10 games of tic_tac_toe in {out}\n" in text
    assert "0 of 10 games, 4 under way" in text
    assert "of 10 games, +" in text
    assert "moving second:" in text
    about = json.loads(figures.read_text())
    assert about == json.loads((out / "summary.json").read_text())
    (result,) = arena.read(out / "results.jsonl")
    assert (result.a, result.b, result.games, result.wins) == ("mcts:4", "random", 10, about["wins"])
    records = load_records(out / "games.txt")
    assert len({record.id for record in records}) == 10
    for first, second in zip(records[::2], records[1::2], strict=True):
        assert first.players == second.players[::-1] == ("mcts:4", "random")
        assert first.actions[:2] == second.actions[:2]
    for record in records:
        *_, _end = replay(record)  # every move is legal

    # The same again has nothing left to play; half of it gone, the same games come again.
    before = lines(out)
    assert match(*command) == 0
    assert lines(out) == before
    (out / "games.jsonl").write_bytes(b"\n".join(before[:5]) + b"\n" + before[5][:20])
    assert match(*command) == 0
    assert "going on after 5" in capsys.readouterr().out
    assert sorted(lines(out)) == sorted(before)


def save(folder: Path, game: str, spec: str, seed: int, **options: object) -> Path:
    made = MAKE(game, **options)
    saving.save(nets.build(nets.spec(spec), made, nnx.Rngs(seed)), folder, made, {"seconds": 1.0, "step": seed})
    return folder


@pytest.mark.slow
def test_networks_of_two_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of them the newest of a run."""
    a = save(tmp_path / "small", "tic_tac_toe", "b1c8", 0)
    save(tmp_path / "run" / "models" / "large", "tic_tac_toe", "b2c8", 1)
    assert match(a, tmp_path / "run", "--games", 4, "--simulations", 2, "--out", tmp_path / "m") == 0
    assert "small - large: " in capsys.readouterr().out
    assert len(load_records(tmp_path / "m" / "games.txt")) == 4
    about = json.loads((tmp_path / "m" / "match.json").read_text())
    assert about["players"]["b"]["path"] == str(tmp_path / "run" / "models" / "large")
    assert (about["search"]["simulations"], about["search"]["noise_share"]) == (2, 0.0)
    assert "search_of_b" not in about


@pytest.mark.slow
def test_a_network_against_itself_with_another_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = save(tmp_path / "net", "tic_tac_toe", "b1c8", 0)
    words = [net, net, "--games", 4, "--simulations", 2, "--out", tmp_path / "m", "--set", "search.fpu_reduction=0.3"]
    words += ["--set", "a.search.c_init=2", "--set", "b.search.simulations=3"]
    assert match(*words) == 0
    assert "net - net#2: " in capsys.readouterr().out
    about = json.loads((tmp_path / "m" / "match.json").read_text())
    settings = [about[key] for key in ("search", "search_of_b")]
    told = [[one[name] for name in ("c_init", "simulations", "fpu_reduction")] for one in settings]
    assert told == [[2.0, 2, 0.3], [players.PLAYING["c_init"], 3, 0.3]]
    assert match(*words[:-1], "b.search.simulations=4") == 2
    assert "search_of_b.simulations: 3 -> 4" in capsys.readouterr().err


@pytest.mark.slow
def test_a_network_against_an_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = save(tmp_path / "net", "go", "b1c8", 0, size=5, max_moves=60)
    words = [net, fake("gtp", "fine"), "--games", 6, "--simulations", 4, "--parallel", 2, "--out", tmp_path / "m"]
    assert match(*words) == 0
    assert "of 6 games, +" in capsys.readouterr().out
    records = load_records(tmp_path / "m" / "games.sgf")
    for record in records:
        *_, _end = replay(record)
    assert len({record.actions for record in records}) == 6


def test_a_change_between_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["random", "random", "--game", "tic_tac_toe", "--games", 4, "--out", tmp_path]
    assert match(*command) == 0
    assert "random - random#2: " in capsys.readouterr().out
    assert match(*command, "--seed", 5, "--opening-moves", 3) == 2
    error = capsys.readouterr().err
    assert "seed: 0 -> 5" in error
    assert "opening_moves: 2 -> 3" in error
    assert "choose another --out" in error


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["random", "random"], "say what they play"),
        (["random", "random", "--game", "go9", "--games", "3"], "expected an even number"),
        (["random", "random", "--game", "go9", "--games", "0"], "at least 1"),
        (["random", "random", "--game", "go9", "--seed", "-1"], "--seed"),
        (["random", "random", "--game", "go9", "--set", "train.batch=3"], "expected game.KEY, search.KEY"),
        (["random", "random", "--game", "go9", "--set", "search.speed=3"], "search: speed"),
        (["random", "random", "--game", "go9", "--set", "b.search.speed=3"], "b.search: speed"),
        (["random", "random", "--game", "go9", "--set", "b.game.size=3"], "or b.search.KEY"),
        (["random", "random", "--game", "go9", "--set", "game.size=1"], "go: size"),
        (["random", "gtp:gnugo", "--game", "go9", "--seconds-per-move", "0"], "seconds above 0"),
        (["random", "uci:x", "--game", "go9", "--uci-option", "Hash"], "expected NAME=VALUE"),
        (["random", "nobody", "--game", "go9"], "nobody: there is no such file or folder"),
        (["random", "mcts:9999999", "--game", "go9"], "playouts"),
    ],
)
def test_what_is_wrong_is_said(
    words: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert match(*words, "--out", tmp_path / "m") == 2
    assert problem in capsys.readouterr().err


def test_an_engine_that_does_not_start_costs_no_game(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert match("random", fake("gtp", "stillborn"), *GO, "--games", 4, "--out", tmp_path) == 2
    assert "did not start: crash: ended with exit status 1; it said: no licence" in capsys.readouterr().err
    assert lines(tmp_path) == []


@pytest.mark.slow
def test_an_engine_that_crashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert match("random", fake("gtp", "crash"), *GO, "--games", 4, "--out", tmp_path, "--parallel", 1) == 0
    text = capsys.readouterr().out
    assert text.count("its own count may differ, since it cannot be told the rules by GTP") == 1
    assert text.index("its own count may differ") < text.index("100.0 % (")
    assert "lost 4 by crash: game 1: ended with exit status 3; it said: first line / Traceback: boom" in text
    records = load_records(tmp_path / "games.sgf")
    assert [record.ending for record in records] == ["forfeit"] * 4
    assert "Traceback: boom" in records[0].notes["reason"]


def run(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tengen", "match", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_games(process: subprocess.Popen[str], folder: Path, count: int) -> None:
    eventually(lambda: len(lines(folder)) >= count or process.poll() is not None)


@pytest.mark.slow
def test_it_goes_on_after_a_kill_and_after_ctrl_c(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, out = tmp_path / "log", tmp_path / "m"
    command = ["random", fake("gtp", "fine", log), *GO, "--games", 4000, "--out", out, "--parallel", 2]
    process = run(*command)
    wait_for_games(process, out, 3)
    process.kill()
    process.communicate()
    killed = lines(out)
    assert 3 <= len(killed) < 4000
    process = run(*command)
    wait_for_games(process, out, len(killed) + 3)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=LONG)
    assert process.returncode == 130
    assert f"going on after {len(killed)}" in said or f"going on after {len(killed) - 1}" in said
    kept = lines(out)
    assert len(killed) < len(kept) < 4000
    assert kept[: len(killed) - 1] == killed[:-1]
    assert f"stopped by Ctrl-C: {len(kept)} of 4000 games are kept in {out}; the same command goes on" in said
    assert len(load_records(out / "games.sgf")) == len(kept)
    numbers = [int(line) for line in log.read_text().splitlines()]
    eventually(lambda: not any(Path(f"/proc/{number}").exists() for number in numbers), "no engine is left")


@pytest.mark.slow
@pytest.mark.skipif(GNUGO is None, reason="gnugo is not installed")
def test_gnugo_against_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Once with the rules of the match in its command, once without: it is given them, and is the same player."""
    short, rules = f"gtp:{GNUGO} --mode gtp --level 1", "--chinese-rules --capture-all-dead --positional-superko"
    words = [f"{short} {rules}", short, *GO, "--games", 2, "--seconds-per-move", 600, "--out", tmp_path]
    assert match(*words) == 0
    text = capsys.readouterr().out
    assert f"{short} {rules} - {short} {rules}#2: 2 games of go" in text
    assert f"GNU Go is started with {rules} too" in text
    assert "may differ" not in text
    assert "of 2 games, +" in text
    for record in load_records(tmp_path / "games.sgf"):
        assert record.ending in ("played out", "resigned")
        *_, _end = replay(record)


@pytest.mark.slow
@pytest.mark.skipif(STOCKFISH is None, reason="stockfish is not installed")
def test_stockfish_against_random_play(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["random", f"uci:{STOCKFISH}", "--game", "chess", "--games", 2, "--nodes", 500, "--out", tmp_path]
    assert match(*words, "--uci-option", "Skill Level=20") == 0
    assert "+0 =0 -2" in capsys.readouterr().out
    assert os.path.getsize(tmp_path / "games.pgn") > 500
    assert match("random", fake("uci", "illegal"), "--game", "chess", "--games", 2, "--out", tmp_path / "i") == 0
    assert "lost 2 by illegal move" in capsys.readouterr().out
