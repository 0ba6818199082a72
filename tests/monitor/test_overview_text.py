"""The state of runs that were put together by hand, good ones and strange ones."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tengen import match
from tengen.data.format.chunk import write_chunk
from tengen.data.store.store import Store
from tengen.errors import TengenError
from tengen.monitor import overview, overview_text
from tengen.run import metrics, networks
from tengen.run.part import Progress, waiting
from tengen.run.part_status import PartStatus, StatusWriter
from tests.helpers import rows
from tests.helpers.patience import eventually

OLD, NEW = "go-main-s1000-d500", "go-main-s20000-d9000"


def a_run(base: Path) -> Path:
    base.mkdir(parents=True, exist_ok=True)
    (base / "config.yaml").write_text("whatever")
    return base


def add_network(base: Path, folder: str, name: str, verdict: object = None) -> None:
    path = base / folder / name
    path.mkdir(parents=True)
    (path / "model.safetensors").write_bytes(b"x" * 1000)
    if verdict is not None:
        (path / "verdict.json").write_text(json.dumps(verdict))


def add_chunks(base: Path, *sizes: int) -> list[Path]:
    store, paths = Store(base / "selfplay"), []
    for seed, size in enumerate(sizes):
        paths.append(store.reserve(OLD))
        write_chunk(paths[-1], rows.FORM, rows.rows(size, seed), rows.GAME, network=OLD, more={"finished": size})
    return paths


def lines(base: Path) -> list[str]:
    """All but the overview, of which test_overview.py tells."""
    return overview_text.describe(overview.look(base)).partition("\n\n")[2].splitlines()


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda base: None, "there is no such folder"),
        (lambda base: base.write_text("x"), "is a file, expected the folder of a run"),
        (lambda base: base.mkdir(), "is empty, so there is no run; `tengen run CONFIG --base "),
        (lambda base: (base / "x").mkdir(parents=True), "is not a run, because it has no config.yaml"),
    ],
)
def test_no_run(tmp_path: Path, make: object, complaint: str) -> None:
    make(tmp_path / "run")  # type: ignore[operator]
    with pytest.raises(TengenError, match="run: " + complaint):
        overview.look(tmp_path / "run")


def test_a_run_that_has_only_begun(tmp_path: Path) -> None:
    base = a_run(tmp_path)
    text = overview_text.describe(overview.look(base)).splitlines()
    assert text[:3] == ["not running, and nothing was done yet", f"next:     begin: tengen run {base}", ""]
    assert text[3:6] == ["no networks yet", "", "played:   0 rows, 0 games, in 0 chunks"]
    assert text[7].startswith("disk:     8 bytes, ")
    assert text[7].endswith(" free (other files 8 bytes)")
    assert sorted(os.listdir(base)) == ["config.yaml"]  # nothing was written


def test_parts_in_the_order_of_the_ring(tmp_path: Path) -> None:
    base = a_run(tmp_path)
    with StatusWriter(base, "train", "main") as train, StatusWriter(base, "shuffle", "a1") as shuffle:
        train.show(waiting("the first shuffle"))
        shuffle.show(waiting("12,410 of 20,000 rows", 12410, 20000))
        eventually(lambda: len([seen for seen in overview.look(base).status.parts if seen.waiting]) == 2)
        assert [re.sub("[0-9:]{8}", "TIME", line) for line in lines(base)[:2]] == [
            "shuffle a1: waiting for TIME: 12,410 of 20,000 rows",
            "train main: waiting for TIME: the first shuffle",
        ]
        told = overview.values(overview.look(base))["parts"][0]
    assert (told["kind"], told["done"], told["of"], told["alive"]) == ("shuffle", 12410, 20000, True)


def test_words_about_a_part() -> None:
    seen = PartStatus("gate", "a", True, "here", 7, "playing\x1b[31m", False, 5.0, 9.0)
    assert overview_text.part_words(seen) == "playing [31m"
    killed = PartStatus("gate", "a", False, "here", 7, "playing", False, 5.0, 9.0)
    assert overview_text.part_words(killed) == "was killed (process 7 on here), while: playing"


def test_networks_with_rating_and_verdict(tmp_path: Path) -> None:
    base = a_run(tmp_path)
    good = {"schema": 1, "accepted": True, "number": 1, "share": 0.56, "games": 200, "opponent": "random", "why": "x"}
    add_network(base, networks.ACCEPTED, OLD, good)
    add_network(base, networks.REJECTED, "go-main-s3000-d900", {"schema": 1, "accepted": False, "share": 0.41})
    add_network(base, networks.CANDIDATES, NEW)
    add_network(base, networks.EXTRA, "go-main-s4000-d900")
    add_network(base, networks.ACCEPTED, "no network of ours")
    match.append(base / "ratings" / "results.jsonl", match.MatchResult(OLD, "random", 90, 0, 10))
    found = overview.look(base)
    elo = found.networks[0].elo
    assert elo is not None
    assert 300 < elo < 500  # 90 % are 382 points
    table = lines(base)[:5]
    assert table[0].split() == ["network", "Elo", "+-", "verdict"]
    assert table[1].startswith(f"{OLD}  ")
    assert table[1].endswith("accepted: 56.0 % of 200 games against random; x")
    assert [line.split("  ")[-1].strip() for line in table[2:]] == ["rejected: 41.0 %", "extra", "waiting for the gate"]
    assert found.problems == ()


def test_many_networks(tmp_path: Path) -> None:
    base = a_run(tmp_path)
    for number in range(30):
        add_network(base, networks.CANDIDATES, f"go-main-s{number}-d0")
    text = lines(base)
    assert text[1].startswith("go-main-s10-d0 ")
    assert text[21] == "and 10 older ones, which --all shows; together: 30 waiting for the gate"
    assert "--all" not in overview_text.describe(overview.look(base), every=True)


def test_rows_games_and_chunks_that_are_no_good(tmp_path: Path) -> None:
    base = a_run(tmp_path)
    paths = add_chunks(base, 5, 6, 7, 8)
    paths[1].write_bytes(paths[1].read_bytes()[:-7])
    paths[2].rename(paths[2].with_name(paths[2].name + ".corrupt"))
    found = overview.look(base)
    assert (found.played.rows, found.played.games, found.played.chunks) == (13, 13, 2)
    assert [path.name for path in found.played.corrupt] == [paths[1].name, paths[2].name + ".corrupt"]
    text = lines(base)
    assert "played:   13 rows, 13 games, in 2 chunks" in text
    assert text[-3:] == [
        "2 chunks that cannot be used:",
        f"  {paths[1]}",
        f"  {paths[2]}.corrupt",
    ]
    assert paths[1].exists()  # looking changes nothing


def test_the_newest_shuffle(tmp_path: Path) -> None:
    from tengen.config.settings.data import WindowSettings
    from tengen.config.settings.parts import ShuffleSettings
    from tengen.data.shuffle.plan import WindowSurvey, plan
    from tengen.data.shuffle.shuffle import shuffle

    base = a_run(tmp_path)
    add_chunks(base, *[10] * 12)
    survey = WindowSurvey(Store(base / "selfplay"), rows.FORM, rows.GAME)
    shuffle(plan(survey, ShuffleSettings(validation_share=0.2), WindowSettings(min_rows=10)), base, 0)
    found = overview.look(base)
    assert found.shuffle is not None
    first, last = found.shuffle.window
    assert last == 120
    assert found.shuffle.rows + found.shuffle.validation_rows == 120 - first
    assert any(line.startswith(f"shuffled: {found.shuffle.rows:,} rows and ") for line in lines(base))


def test_a_fused_run(tmp_path: Path) -> None:
    base = a_run(tmp_path)
    add_network(base, networks.ACCEPTED, OLD)
    with metrics.Metrics(base) as file:
        file.write("progress", {"stage": "playing", "waiting": "5 of 9 rows", "steps": 310})
    text = lines(base)
    assert "learned:  310 steps" in text
    assert text[1].endswith("saved")
    told = overview.values(overview.look(base))["overview"]
    assert (told["state"], told["steps"], told["commands"]["play it"]) == ("stopped", 310, f"tengen play {base}")
    with StatusWriter(base, "fused", "fused") as notice:
        notice.show(Progress("learning", figures={"steps": 320}))
        eventually(lambda: [seen.words for seen in overview.look(base).status.parts] == ["learning"])
        text = overview_text.describe(overview.look(base)).splitlines()
    assert re.fullmatch(r"running for 00:00:\d\d, since .* \(fused, process \d+ on .*\): learning", text[0])
    assert "learned:  320 steps" in text
    assert not any(line.startswith("fused") for line in text), "the overview tells of it"


def test_garbage_everywhere(tmp_path: Path) -> None:
    base = a_run(tmp_path)
    for name in ("models", "candidates", "selfplay", "shuffled"):
        (base / name).write_text("a file")
    (base / "parts").mkdir()
    (base / "parts" / "train-main.json").write_text("[" * 100_000)
    (base / "ratings").mkdir()
    (base / "ratings" / "results.jsonl").write_text("no result\n")
    (base / "metrics.jsonl").write_bytes(b"\xff\n" * 1000)
    (base / "link").symlink_to(base / "nowhere")
    add_network(base, networks.REJECTED, OLD, {"schema": 1, "accepted": True, "share": "x", "games": [], "why": 3})
    add_network(base, networks.REJECTED, NEW, "[" * 100_000)
    found = overview.look(base)
    text = overview_text.describe(found)
    for problem in ("results.jsonl, line 1: not the result of a match", "models: cannot be read: Not a directory"):
        assert problem in text
    assert len(found.problems) == 5
    assert [network.state for network in found.networks] == ["rejected", "rejected"]
    assert json.loads(json.dumps(overview.values(found), allow_nan=False))["problems"] == list(found.problems)


@pytest.mark.parametrize("index", ["{}", "[" * 100_000, '{"schema": 1}'])
def test_an_index_that_is_none(tmp_path: Path, index: str) -> None:
    base = a_run(tmp_path)
    folder = base / "shuffled" / "00000000-0123abcd"
    folder.mkdir(parents=True)
    (folder / "index.json").write_text(index)
    assert overview.look(base).shuffle is None


def test_numbers_that_json_does_not_know(tmp_path: Path) -> None:
    base = a_run(tmp_path)
    (base / "parts").mkdir()
    usual = '"machine": "m", "process": 1, "words": "", "waiting": false, "running": 1, "done": null, "of": null'
    for part, seconds in (("train-main", "1"), ("gate-gate", "NaN")):
        text = f'{{"schema": 1, {usual}, "seconds": {seconds}, "figures": {{"x": -Infinity}}}}'
        (base / "parts" / f"{part}.json").write_text(text)
    found = overview.look(base)
    (part,) = json.loads(json.dumps(overview.values(found), allow_nan=False))["parts"]
    assert (part["kind"], part["figures"]) == ("train", {"x": None}), "what is no status is left out"
    assert "was killed" in overview_text.describe(found)


def test_it_needs_no_jax() -> None:
    program = "import sys; import tengen.monitor.overview_text; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
