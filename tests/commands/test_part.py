"""The ring by its commands, as a person types them."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tengen import nets
from tengen.commands import main
from tengen.config import load
from tengen.data.shuffle.folders import newest
from tengen.data.store.store import Store
from tengen.files import lock
from tengen.nets import saving
from tengen.run import locks, networks
from tengen.run.config_file import write
from tests.helpers.pipeline_data import GATE
from tests.helpers.pipelines import add_rows
from tests.helpers.tiny_runs import settings

TINY = "tic_tac_toe"
PARTS = ("selfplay", "shuffle", "train", "export", "gate")
SETTINGS = settings(
    *GATE, "gate.share=0.01", "ring.samples_per_epoch=64", "ring.poll_seconds=0.01", "shuffle.validation_share=0"
)
Command = Callable[..., str]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def tengen(base: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command on the run: what it printed, without the times. `fails`: what it complained about."""

    def command(part: str, *more: str, sets: Sequence[str] = (), fails: bool = False, config: str = TINY) -> str:
        chosen = {text.partition("=")[0]: text for text in (*SETTINGS, *sets)} if config == TINY else {}
        words = [word for text in chosen.values() for word in ("--set", text)]
        code = main([part, config, "--base", str(base), *words, *more])
        found = capsys.readouterr()
        assert code == (2 if fails else 0), found.err
        return found.err if fails else re.sub(r"(?m)^\d\d:\d\d:\d\d ", "", found.out)

    return command


def rows(base: Path, network: str | None = None) -> int:
    return sum(count for chunk, count in Store(base / "selfplay").listing().chunks if network in (None, chunk.network))


def test_the_help_of_a_shuffle_explains_the_window_of_a_run(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(load(TINY, SETTINGS), base, [])
    assert main(["shuffle", str(base), "--help"]) == 0
    assert "now                        0" in capsys.readouterr().out
    assert main(["shuffle", "--help"]) == 0
    assert capsys.readouterr().out.strip().endswith("--dry-run")
    assert main(["shuffle", str(base.parent / "nothing"), "--help"]) == 0
    assert "no window to explain: " in capsys.readouterr().out


@pytest.mark.slow
def test_once_round_the_ring(base: Path, tengen: Command) -> None:
    out = tengen("selfplay", "--max-rows", "200")  # enough for two epochs, however the rows are split
    assert f"{base}: there was no run, so a new one begins here" in out
    assert re.search(r"200 rows are played: \d+ games, \d+ rows \(0 not written yet\)", out)
    played = rows(base, networks.RANDOM)
    assert played >= 200

    out = tengen("shuffle", "--dry-run")
    assert out.startswith(f"{played} rows in the run, the window is the newest {played} ")
    assert not (base / "shuffled").exists()
    out = tengen("shuffle", "--once")
    made = newest(base)
    assert out.endswith(f": {made.name}\n")
    assert made.total_rows == played
    assert tengen("shuffle", "--once") == "waiting: 0 of 1 new rows until the next shuffle\n"

    name = f"tic_tac_toe-main-s64-d{played}"
    out = tengen("train", "--once", "--max-epochs", "2")
    assert f"; {name} waits to be exported\n" in out
    assert "2 epochs done" in out
    assert (base / "train" / "main" / "export").exists()

    out = tengen("export", "--once")
    assert f"exported {base / 'candidates' / name}\n" in out
    about = json.loads((base / "candidates" / name / "made.json").read_text())
    assert (about["trainer"], about["samples"], about["rows"]) == ("main", 64, played)

    waiting = [entry.name for entry in networks.candidates(base)]
    out = tengen("gate", "--once")
    assert f"{name} is accepted: it is the first network" in out
    assert all(f"{each} is " in out for each in waiting)
    best = networks.newest(base).name

    out = tengen("selfplay", "--max-games", "3")
    assert f"playing with {best}\n" in out
    assert "3 games are played: " in out
    assert rows(base, best) > 0
    assert rows(base, networks.RANDOM) == played
    assert list((base / "parts").iterdir()) == [], "no part is left"

    tengen("export", "--now")
    last = max(int(path.name.removeprefix("step_")) for path in (base / "train" / "main").glob("step_*"))
    assert networks.known(base, f"tic_tac_toe-main-s{16 * last}-d{played}"), "the newest checkpoint"


@pytest.mark.slow
def test_trainers_of_other_sizes_feed_nobody(base: Path, tengen: Command) -> None:
    add_rows(base, 100, 1)
    tengen("shuffle", "--once")
    more, sets = ("--name", "big", "--max-epochs", "1"), ("net.name=b2c8", "train.samples_per_row=1")
    out = tengen("train", *more, sets=sets)
    assert "1 epoch done" in out
    tengen("export", "--once")
    (made,) = networks.extra(base)
    assert made.name == "tic_tac_toe-big-s64-d100"
    assert saving.read(made.path).spec == nets.spec("b2c8")
    assert networks.candidates(base) == []
    assert "train/big/config.yaml: this run has other settings" in tengen("train", "--name", "big", fails=True)
    tengen("train", *more, "--role", "trainonly", "--stop-when-limited", sets=sets)  # its rows are used up
    out = tengen("train", "--name", "limited", "--stop-when-limited", "--role", "trainonly")
    assert "nothing to learn now, which would take a newer shuffle than " in out
    assert not (base / "train" / "limited" / "export").exists()


def test_two_trainers_of_one_name(base: Path, tengen: Command) -> None:
    with locks.taking_part(base, "train-main"):
        err = tengen("train", "--once", fails=True)
        assert err.startswith(f"{base}: trainer main: is being used by process ")
        assert err.endswith("; wait until it ends, or choose another --name\n")
        tengen("gate", "--once")  # makes the run
        assert tengen("train", "--once", "--name", "second").endswith("waiting: the first shuffle\n")


def test_what_the_fused_loop_uses_is_not_for_parts(base: Path, tengen: Command) -> None:
    with lock.locked(base):
        for part in PARTS:
            assert f"{base}: is being used by process " in tengen(part, "--once", fails=True)


def test_a_run_of_something_else(base: Path, tengen: Command) -> None:
    tengen("gate", "--once")
    for part, *more in (*((part, "--once") for part in PARTS), ("shuffle", "--dry-run")):
        err = tengen(part, *more, config="connect_four", fails=True)
        assert "game.name: tic_tac_toe -> connect_four" in err
        assert err.endswith("(CONFIG may be this file), or choose another --base\n")
    assert main(["gate", str(base / "config.yaml"), "--base", str(base), "--once"]) == 0


def test_no_run_there(base: Path, tengen: Command) -> None:
    assert tengen("shuffle", "--dry-run", fails=True).startswith(f"{base}: no run is there")
    assert not base.exists()
    assert "begins here" in tengen("train", "--once")
    assert "train/main: there is no checkpoint yet" in tengen("export", "--now", fails=True)
    assert "train/nobody: no trainer of that name" in tengen("export", "--now", "--name", "nobody", fails=True)


def test_a_base_that_is_a_file(base: Path, tengen: Command) -> None:
    base.write_text("precious")
    for part in PARTS:
        assert "is a file or lies below one" in tengen(part, "--once", fails=True)
    assert base.read_text() == "precious"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["train", "--role", "cook"], '"cook": unknown role, expected one of main, extra, trainonly'),
        (["train", "--name", "a b"], "--name: expected letters and digits, at most 40 of them, got 'a b'"),
        (["train", "--name", ""], "--name: expected letters and digits"),
        (["export", "--name", "../x"], "--name: expected letters and digits"),
        (["export", "--name", ""], "--name: expected letters and digits"),
        (["train", "--max-epochs", "0"], "--max-epochs: expected a whole number of at least 1, got '0'"),
        (["selfplay", "--max-rows", "-3"], "--max-rows: expected a whole number of at least 1, got '-3'"),
        (["selfplay", "--max-games", "many"], "--max-games: expected a whole number of at least 1, got 'many'"),
    ],
)
def test_options_that_make_no_sense(base: Path, tengen: Command, arguments: list[str], complaint: str) -> None:
    assert complaint in tengen(*arguments, fails=True)
    assert not base.exists()


@pytest.mark.parametrize("part", PARTS)
def test_help(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([part, "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "with Ctrl-C." in out
    assert "--once" in out


def test_a_trainer_on_several_hosts_needs_all_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "tic_tac_toe", "--base", str(tmp_path / "none"), "--processes", "2"]
    assert main([*words, "--coordinator", "localhost:1234"]) == 2
    assert "--coordinator, --processes and --process: give all of them, or none" in capsys.readouterr().err
    assert main([*words, "--coordinator", "localhost", "--process", "0"]) == 2
    assert "--coordinator: expected HOST:PORT of process 0" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_a_worker_writes_for_katago_although_the_run_averages_values(
    base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    go = ("game.size=3", "game.observation=katago", 'net.heads=["score"]', "selfplay.value_horizon=6")
    go += ("selfplay.full_share=1", "selfplay.decided_full_share=1")  # or else a game may leave no row
    write(load("go5", settings(*go)), base, [])
    words = ["selfplay", str(base), "--max-games", "1"]
    assert main([*words, "--format", "katago"]) == 0
    assert list(base.glob("selfplay/random/tdata/*.npz"))
    for more, complaint in (
        (["--set", "data.format=katago"], "selfplay.value_horizon: expected 0, because files of KataGo"),
        (["--set", "selfplay.value_horizon=5"], "selfplay.value_horizon: 6.0 -> 5.0 (all processes"),
        (["--set", "selfplay.value_horizon=5", "--format", "katago"], "selfplay.value_horizon: expected 0"),
    ):
        capsys.readouterr()
        assert main([*words, *more]) == 2
        assert complaint in capsys.readouterr().err


def test_a_second_trainer_needs_a_run_to_join(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "tic_tac_toe", "--base", str(tmp_path / "none"), "--name", "big"]) == 2
    assert "there is no run here that trainer big could join" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
