"""Recorded games of a run."""

from pathlib import Path

import pytest

from tengen.data.records.records import save_records
from tengen.web import games
from tests.helpers.web_runs import HOSTILE, NETWORKS, make_run, record


def test_games_are_listed_and_shown(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run")
    assert games.networks_with_games(base) == [NETWORKS[1]]
    listed = games.listed(base, NETWORKS[1])
    assert [one["key"] for one in listed] == ["00000001.txt:0", "00000001.txt:1"]
    assert listed[0]["length"] == 5
    found = games.shown(base, NETWORKS[1], listed[1]["key"])
    assert found["moves"][0]["name"] == "b2"
    assert found["text"]["name"].endswith(".txt")
    assert found["text"]["content"].startswith("tengen record 1")


@pytest.mark.parametrize(
    ("network", "key"),
    [
        ("../../secret", "a.txt:0"),
        ("..", "metrics.jsonl:0"),
        (NETWORKS[1], "../00000002.txt:0"),
        (NETWORKS[1], "00000001.txt:2"),
        (NETWORKS[1], "00000001.txt:-1"),
        (NETWORKS[1], "00000001.txt"),
        ("", ""),
    ],
)
def test_nothing_outside_of_the_games_can_be_asked_for(tmp_path: Path, network: str, key: str) -> None:
    base = make_run(tmp_path / "run")
    save_records(tmp_path / "secret" / "a.txt", [record()])
    with pytest.raises(games.NoSuchGame):
        games.shown(base, network, key)


def test_links_do_not_lead_to_other_games(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run")
    save_records(tmp_path / "secret" / "a.txt", [record()])
    (base / "games" / "linked").symlink_to(tmp_path / "secret")
    (base / "games" / NETWORKS[1] / "linked.txt").symlink_to(tmp_path / "secret" / "a.txt")
    assert games.networks_with_games(base) == [NETWORKS[1]]
    assert len(games.listed(base, NETWORKS[1])) == 2
    other = make_run(tmp_path / "other")
    (other / "games").rename(tmp_path / "moved")
    (other / "games").symlink_to(tmp_path / "moved")
    assert games.networks_with_games(other) == [NETWORKS[1]], "a folder of a run may be on another disk"


def test_a_game_has_the_comments_of_its_record(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run")
    (base / "games" / NETWORKS[0]).mkdir()
    said = f"(;SZ[5];B[aa]C[{HOSTILE}];W[bb]C[value +0.250\n+0.2 before\nexpected: A1];W[])"
    (base / "games" / NETWORKS[0] / "00000001.sgf").write_text(said)
    moves = games.shown(base, NETWORKS[0], "00000001.sgf:0")["moves"]
    assert [move.get("comment") for move in moves[:2]] == [HOSTILE, "+0.2 before\nexpected: A1"]


def test_games_of_chess_are_listed(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run")
    (base / "games" / NETWORKS[0]).mkdir()
    (base / "games" / NETWORKS[0] / "00000001.pgn").write_text('[White "one"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n')
    (found,) = games.listed(base, NETWORKS[0])
    assert (found["game"], found["length"], found["result"]) == ("chess", 4, -1.0)
    text = games.shown(base, NETWORKS[0], found["key"])["text"]
    assert text["name"].endswith(".pgn")
    assert "2. g4 Qh4# 0-1" in text["content"]


def test_a_damaged_file_has_no_games(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run")
    (base / "games" / NETWORKS[1] / "00000002.txt").write_text("tengen record 1\nnonsense")
    assert len(games.listed(base, NETWORKS[1])) == 2


def test_a_selection_has_games_of_several_networks_once(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run")
    save_records(base / "games" / NETWORKS[0] / "00000001.txt", [record() for _ in range(30)])
    found = games.selection(base, 12)
    assert {one["network"] for one in found} == set(NETWORKS)
    assert len({(one["network"], one["key"]) for one in found}) == len(found) <= 12
