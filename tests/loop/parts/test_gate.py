"""The gate: what is accepted and what is not, what it writes, and that nothing is lost or judged twice."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tengen import files, match
from tengen.data.records.records import load_records
from tengen.errors import TengenError
from tengen.match import device_match as matches
from tengen.match.gate_match import GateMatch
from tengen.match.results import MatchResult
from tengen.nets import saving
from tengen.run import networks
from tests.helpers.pipeline_data import Gate, gate_config, names, network, put

FIRST, SECOND, THIRD, FOURTH = (f"tic_tac_toe-main-s{n}-d{2 * n}" for n in (100, 200, 300, 400))
ACCEPT, REJECT = "gate.share=0.01", "gate.share=1"  # no random network wins all games


@pytest.fixture
def base(tmp_path: Path, saved: list[Path]) -> Path:
    """A run with one accepted network and one candidate."""
    put(tmp_path, networks.ACCEPTED, 100, saved[0], accepted=True, number=1)
    put(tmp_path, networks.CANDIDATES, 200, saved[1])
    return tmp_path


def results(base: Path) -> list[MatchResult]:
    return match.read(base / "ratings" / "results.jsonl")


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The candidate of every round that is played."""
    played: list[str] = []
    play = GateMatch.play_round

    def noted(contest: GateMatch, stop: Any, show: Any) -> Any:
        played.append(contest.games.names[0])
        return play(contest, stop, show)

    monkeypatch.setattr(GateMatch, "play_round", noted)
    return played


def test_the_first_network_needs_no_games(tmp_path: Path, saved: list[Path]) -> None:
    put(tmp_path, networks.CANDIDATES, 100, saved[0])
    gate = Gate(tmp_path)
    assert gate.run().words == f"no candidate to test; {FIRST} is the newest accepted network"
    assert networks.newest(tmp_path).name == FIRST
    verdict = networks.verdict(tmp_path / networks.ACCEPTED / FIRST)
    assert (verdict["number"], verdict["games"], verdict["opponent"]) == (1, 0, None)
    assert verdict["why"] == "it is the first network: there is none to play against"
    assert gate.said == [f"{FIRST} is accepted: {verdict['why']}"]
    assert not results(tmp_path)


def test_it_says_what_it_waits_for(tmp_path: Path) -> None:
    progress = Gate(tmp_path).run()
    assert progress.words == "no candidate to test: the first that comes is accepted without games"
    assert progress.figures == {"accepted": 0, "rejected": 0, "games": 0}


def test_accepted(base: Path) -> None:
    gate = Gate(base, ACCEPT)
    gate.run()
    assert [entry.name for entry in networks.accepted(base)] == [FIRST, SECOND]
    assert names(base, networks.CANDIDATES) == names(base, networks.REJECTED) == []
    verdict = networks.verdict(base / networks.ACCEPTED / SECOND)
    games = verdict["wins"] + verdict["draws"] + verdict["losses"]
    assert (verdict["accepted"], verdict["number"], verdict["opponent"]) == (True, 2, FIRST)
    assert 0 < verdict["games"] == games < 8, "half a point was needed, so no round is played to its end"
    assert verdict["share"] == pytest.approx((verdict["wins"] + verdict["draws"] / 2) / games)
    assert verdict["needed_points"] == 0.5
    assert verdict["settings"]["share"] == verdict["needed_share"] == 0.01
    assert verdict["why"].endswith("and so the 0.5 of 16 points that it needed")
    assert verdict["seconds"] > 0
    assert 0 < verdict["distinct_games"] <= games
    low, high = verdict["elo_low"], verdict["elo_high"]
    assert low is None or low <= verdict["elo"]
    assert high is None or high >= verdict["elo"]
    counts = [verdict[key] for key in ("wins", "draws", "losses")]
    assert results(base) == [MatchResult(SECOND, FIRST, *counts)]
    records = load_records(base / "games" / "gate" / f"{SECOND}.txt")
    assert len(records) == games
    assert {record.players for record in records} <= {(FIRST, SECOND), (SECOND, FIRST)}
    for_it = [(record.result or 0.0) * (1 if record.players[0] == SECOND else -1) for record in records]
    assert [for_it.count(result) for result in (1.0, 0.0, -1.0)] == counts
    assert gate.said[0].startswith(f"{SECOND} is accepted: +")
    assert gate.done[-1].figures == {"accepted": 1, "rejected": 0, "games": games}


def test_rejected(base: Path, rounds: list[str]) -> None:
    gate = Gate(base, REJECT)
    gate.run()
    assert names(base, networks.REJECTED) == [SECOND]
    assert [entry.name for entry in networks.accepted(base)] == [FIRST]
    verdict = networks.verdict(base / networks.REJECTED / SECOND)
    assert "number" not in verdict
    assert verdict["losses"] + verdict["draws"] >= 1
    assert "cannot get the 16 of 16 points" in verdict["why"]
    assert len(rounds) == 1, "half a point that is lost decides"


def test_a_match_is_played_round_by_round_and_tells_how_far_it_is(base: Path, rounds: list[str]) -> None:
    gate = Gate(base, "gate.kind=sprt", "gate.sprt_error=0.0001", "gate.games=24")
    shown: list[str] = []
    gate.part.show = lambda progress: shown.append(progress.words)
    progress = gate.part.run_once()
    assert shown[0] == f"compiling the matches, to test candidate {SECOND}"
    assert shown[1].startswith(f"candidate {SECOND}: "), "also in the middle of a round"
    assert shown[1].endswith(f" of 24 games, +0 =0 -0 against {FIRST}")
    assert progress.worked
    assert (progress.done, progress.of, progress.share) == (8, 24, pytest.approx(1 / 3))
    assert progress.words.startswith(f"candidate {SECOND}: 8 of 24 games, +")
    assert progress.words.endswith(f" against {FIRST}")
    assert names(base, networks.CANDIDATES) == [SECOND]
    gate.run()
    assert rounds == [SECOND] * 3
    verdict = networks.verdict(base / networks.REJECTED / SECOND)
    assert verdict["games"] == verdict["most_games"] == 24
    assert verdict["bounds"] == [pytest.approx(-9.21, abs=0.01), pytest.approx(9.21, abs=0.01)]
    assert abs(verdict["log_likelihood_ratio"]) < 9.21
    assert verdict["why"].startswith("24 games have not decided")
    assert "needed_share" not in verdict


@pytest.mark.parametrize("accepted", [True, False])
def test_the_sequential_test_accepts_and_rejects(base: Path, accepted: bool) -> None:
    bounds = (-1000, -500) if accepted else (500, 1000)
    sprt = ("gate.kind=sprt", f"gate.sprt_low={bounds[0]}", f"gate.sprt_high={bounds[1]}", "gate.sprt_error=0.4")
    Gate(base, *sprt, "gate.games=64").run()
    verdict = networks.verdict(base / (networks.ACCEPTED if accepted else networks.REJECTED) / SECOND)
    assert "has reached the " + ("upper" if accepted else "lower") in verdict["why"]


def test_without_a_gate_all_are_accepted_in_order(base: Path, saved: list[Path], rounds: list[str]) -> None:
    put(base, networks.CANDIDATES, 400, saved[0])
    put(base, networks.CANDIDATES, 300, saved[2])
    Gate(base, "gate.kind=none").run()
    assert [(entry.name, entry.number) for entry in networks.accepted(base)] == [
        (FIRST, 1),
        (SECOND, 2),
        (THIRD, 3),
        (FOURTH, 4),
    ]
    assert not rounds


def test_each_plays_the_newest_accepted_and_all_share_a_program(base: Path, saved: list[Path]) -> None:
    put(base, networks.CANDIDATES, 300, saved[2])
    Gate(base, ACCEPT).run()
    before = matches._play._cache_size()
    put(base, networks.CANDIDATES, 400, saved[0])
    Gate(base, ACCEPT).run()
    assert [(result.a, result.b) for result in results(base)] == [(SECOND, FIRST), (THIRD, SECOND), (FOURTH, THIRD)]
    assert matches._play._cache_size() == before


@pytest.mark.slow
def test_networks_of_different_size_play_each_other(base: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    put(base, networks.CANDIDATES, 300, network(tmp_path_factory.mktemp("larger"), 0, "b2c8"))
    Gate(base, ACCEPT).run()
    assert [entry.name for entry in networks.accepted(base)] == [FIRST, SECOND, THIRD]
    assert results(base)[-1].b == SECOND


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def another_schema(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content.replace(b'\\"schema\\": 1', b'\\"schema\\": 9', 1))


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (truncated, "not a whole safetensors file"),
        (lambda file: file.write_bytes(b""), "cannot be used"),
        (lambda file: file.write_bytes(b"garbage" * 100), "not a whole safetensors file"),
        (lambda file: file.unlink(), "there is no such file"),
        (lambda file: (file.unlink(), file.mkdir()), "cannot be used"),
        (another_schema, "written by another version of Tengen"),
        (lambda file: network(file.parent, 0, game="connect_four"), "a network for connect_four"),
    ],
    ids=["truncated", "empty", "garbage", "missing", "folder", "version", "game"],
)
@pytest.mark.parametrize("kind", ["share", "none"])
def test_what_cannot_play_is_set_aside(
    base: Path, saved: list[Path], damage: Callable[[Path], Any], why: str, kind: str, rounds: list[str]
) -> None:
    damage(base / networks.CANDIDATES / SECOND / saving.FILE_NAME)
    Gate(base, f"gate.kind={kind}").run()
    assert names(base, networks.REJECTED) == [SECOND]
    assert names(base, networks.CANDIDATES) == []
    assert why in networks.verdict(base / networks.REJECTED / SECOND)["why"]
    assert not rounds
    assert not results(base)


def test_what_is_no_network_is_left_alone(tmp_path: Path) -> None:
    for path in ("notes", ".tic_tac_toe-main-s1-d1.abcd.part"):
        (tmp_path / networks.CANDIDATES / path).mkdir(parents=True)
    (tmp_path / networks.CANDIDATES / "tic_tac_toe-main-s5-d5").write_text("a file")
    assert "no candidate" in Gate(tmp_path).run().words
    assert len(names(tmp_path, networks.CANDIDATES)) == 3


def test_a_damaged_accepted_network_is_passed_over(base: Path, saved: list[Path]) -> None:
    truncated(put(base, networks.ACCEPTED, 150, saved[2], accepted=True, number=2).path / saving.FILE_NAME)
    gate = Gate(base, ACCEPT)
    gate.run()
    assert gate.said[0].startswith("an accepted network cannot play, an older one does instead: ")
    assert results(base)[0].b == FIRST
    assert networks.newest(base).number == 3


def test_a_candidate_that_may_be_readable_later_is_waited_for(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied")

    gate = Gate(base, ACCEPT)
    with monkeypatch.context() as patch:
        patch.setattr(saving, "safe_open", refuse)
        assert f"candidate {SECOND} cannot be read: " in gate.run().words
    gate.run()
    assert networks.newest(base).name == SECOND


def test_with_no_opponent_left_it_waits(base: Path, rounds: list[str]) -> None:
    truncated(base / networks.ACCEPTED / FIRST / saving.FILE_NAME)
    assert Gate(base).run().words == "none of the 1 networks in models/ can be read"
    assert names(base, networks.CANDIDATES) == [SECOND]


class Killed(BaseException):
    """As `kill -9`: nobody catches it."""


def killing(monkeypatch: pytest.MonkeyPatch, at: int, after: bool) -> list[str]:
    """From the `at`-th change of a file on, nothing is changed any more; `after`: that one still is."""
    changes: list[str] = []

    def wrap(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*arguments: Any, **options: Any) -> Any:
            changes.append(str(arguments[0]))
            if len(changes) > at or (len(changes) == at and not after):
                raise Killed
            found = change(*arguments, **options)
            if len(changes) == at:
                raise Killed
            return found

        return changed

    monkeypatch.setattr(files, "write_bytes", wrap(files.write_bytes))
    monkeypatch.setattr(Path, "rename", wrap(Path.rename))
    monkeypatch.setattr(shutil, "rmtree", wrap(shutil.rmtree))
    return changes


@pytest.mark.slow
@pytest.mark.parametrize("share", [ACCEPT, REJECT])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_killed_at_any_change_of_a_file_it_goes_on(
    base: Path, share: str, after: bool, at: int, rounds: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        changes = killing(patch, at, after)
        with pytest.raises(Killed):
            Gate(base, share).run()
    assert len(changes) == at, "games, verdict, result, move"
    judged = networks.verdict(base / networks.CANDIDATES / SECOND)
    games = base / "games" / "gate" / f"{SECOND}.txt"
    before = [record.actions for record in load_records(games)] if games.exists() else None
    Gate(base, share).run()
    where = networks.ACCEPTED if share == ACCEPT else networks.REJECTED
    assert names(base, networks.CANDIDATES) == []
    assert SECOND in names(base, where)
    verdict = networks.verdict(base / where / SECOND)
    assert verdict == (judged or verdict)
    assert results(base) == [MatchResult(SECOND, FIRST, verdict["wins"], verdict["draws"], verdict["losses"])]
    assert [record.actions for record in load_records(games)] == (before or [r.actions for r in load_records(games)])
    assert len(rounds) == (2 if at == 1 or (at == 2 and not after) else 1), "with a verdict, no game is played again"


def test_killed_in_the_middle_of_a_match_it_is_played_again_from_the_same_openings(base: Path) -> None:
    sprt = ("gate.kind=sprt", "gate.sprt_error=0.0001")
    killed, again = Gate(base, *sprt), Gate(base, *sprt)
    assert killed.part.run_once() == again.part.run_once()
    again.run()
    assert len(results(base)) == 1
    assert results(base)[0].games == 16


def test_a_copy_of_a_judged_network_is_not_judged_again(base: Path, saved: list[Path], rounds: list[str]) -> None:
    Gate(base, REJECT).run()
    before = networks.verdict(base / networks.REJECTED / SECOND)
    put(base, networks.CANDIDATES, 200, saved[2])
    put(base, networks.CANDIDATES, 100, None)
    Gate(base, ACCEPT).run()
    assert names(base, networks.CANDIDATES) == []
    assert names(base, networks.ACCEPTED) == [FIRST]
    assert networks.verdict(base / networks.REJECTED / SECOND) == before
    assert len(rounds) == 1
    assert len(results(base)) == 1


def test_a_full_disk_costs_no_games(base: Path, rounds: list[str]) -> None:
    gate = Gate(base, ACCEPT)
    for _ in range(2):
        with pytest.MonkeyPatch.context() as patch:

            def full(path: Path, data: bytes) -> None:
                raise files.cannot_write(path, OSError(errno.ENOSPC, "No space left on device"))

            patch.setattr(files, "write_bytes", full)
            with pytest.raises(TengenError, match="No space left"):
                gate.part.run_once()
    gate.run()
    assert len(rounds) == 1
    assert networks.newest(base).name == SECOND


def test_a_damaged_file_of_results_holds_up_nothing(base: Path) -> None:
    path = base / "ratings" / "results.jsonl"
    path.parent.mkdir()
    path.write_text("garbage\n")
    gate = Gate(base, ACCEPT)
    gate.run()
    assert networks.newest(base).name == SECOND
    assert any(text.startswith(f"the ratings will not know of {SECOND} against {FIRST}: ") for text in gate.said)
    assert path.read_text() == "garbage\n"


def test_a_candidate_that_is_taken_away_is_forgotten(base: Path) -> None:
    gate = Gate(base, "gate.kind=sprt", "gate.sprt_error=0.0001")
    assert gate.part.run_once().done == 8
    shutil.rmtree(base / networks.CANDIDATES / SECOND)
    assert "no candidate to test" in gate.run().words
    assert not results(base)


def test_another_accepted_network_starts_the_match_anew(base: Path, saved: list[Path]) -> None:
    gate = Gate(base, "gate.kind=sprt", "gate.sprt_error=0.0001")
    gate.part.run_once()
    put(base, networks.ACCEPTED, 150, saved[2], accepted=True, number=2)
    assert gate.part.run_once().done == 8
    gate.run()
    assert [result.b for result in results(base)] == ["tic_tac_toe-main-s150-d300"]


def test_asked_to_stop_it_begins_no_match(base: Path, rounds: list[str]) -> None:
    gate = Gate(base, stop=lambda: True)
    assert gate.part.run_once().words == f"candidate {SECOND} against {FIRST}"
    assert not rounds


def test_a_verdict_is_plain_json(base: Path) -> None:
    Gate(base, ACCEPT).run()

    def refuse(word: str) -> None:
        raise AssertionError(word)

    json.loads((base / networks.ACCEPTED / SECOND / networks.VERDICT).read_text(), parse_constant=refuse)


def test_the_newest_candidate_first_and_a_line_for_each_round(base: Path, saved: list[Path], rounds: list[str]) -> None:
    put(base, networks.CANDIDATES, 300, saved[2])
    gate = Gate(base, "gate.newest_first=true", "gate.share=0.95")
    gate.run()
    assert rounds[0] == THIRD
    events = [done.words for done in gate.done if done.event]
    assert len(events) == len(rounds) - 2, "the last round of each match has the line of the verdict"
    assert all("of 16 games" in words for words in events)


def test_other_settings_begin_the_match_again(base: Path, rounds: list[str]) -> None:
    stopped = True
    gate = Gate(base, "gate.share=1", stop=lambda: stopped)
    assert gate.part.run_once().words == f"candidate {SECOND} against {FIRST}"
    gate.part.change(gate_config("gate.share=0.01"))
    stopped = False
    gate.run()
    verdict = networks.verdict(base / networks.ACCEPTED / SECOND)
    assert verdict["settings"]["share"] == 0.01
    assert verdict["needed_share"] == 0.01


def test_folders_on_other_disks(base: Path, saved: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = tmp_path / "disk"
    for name in (networks.ACCEPTED, networks.CANDIDATES):
        shutil.move(base / name, disk / name)
        (base / name).symlink_to(disk / name)
    rename = Path.rename

    def apart(path: Path, target: Path) -> Path:
        if path.parent.name != Path(target).parent.name:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", apart)
    Gate(base, ACCEPT).run()
    assert [entry.name for entry in networks.accepted(base)] == [FIRST, SECOND]
    assert names(base, networks.CANDIDATES) == []
    assert sorted(path.name for path in (disk / networks.ACCEPTED).iterdir()) == [FIRST, SECOND]
