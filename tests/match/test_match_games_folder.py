"""A match in a folder: what is written, what is read again, and what is refused."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tengen import games, match
from tengen.config.settings.search import SearchSettings
from tengen.data.records.records import load_records
from tengen.errors import TengenError
from tengen.match.match_games import EngineOpinions, MatchFolder, PlayedGame

GAME = games.make("go", size=5)
ABOUT: dict[str, Any] = {"seed": 1, "game": {"size": 5, "komi": 7.0}}
NAMES = ("net", "gtp:x --y")


def game(number: int, result: float = 1.0, **more: Any) -> PlayedGame:
    return PlayedGame(number=number, actions=(12, 25, 25), opening=1, seed=(0, 7), result=result, **more)


def opened(folder: Path, games: int = 4, about: dict[str, Any] = ABOUT, names: tuple[str, str] = NAMES) -> Any:
    return MatchFolder.opened(folder, names, games, about)


def test_games_are_there_again(tmp_path: Path) -> None:
    first = game(0, ending="resigned", reason="resigned")
    second = game(3, -1.0, ending="forfeit", fault="crash", reason="ended with exit status 3", seconds=1.5)
    with opened(tmp_path / "m") as book:
        assert book.missing == [0, 1, 2, 3]
        book.add(first)
        book.add(second, game(0, -1.0))
        assert book.missing == [1, 2]
    with opened(tmp_path / "m") as book:
        assert book.played == {0: first, 3: second}
        assert book.missing == [1, 2]


def test_half_a_line_at_the_end_is_no_game(tmp_path: Path) -> None:
    with opened(tmp_path) as book:
        book.add(game(0), game(1))
    path = tmp_path / "games.jsonl"
    whole = path.read_bytes()
    line = len(whole.splitlines(keepends=True)[0])
    for cut in (len(whole) - 1, len(whole) - 20, line + 1):
        path.write_bytes(whole[:cut])
        with opened(tmp_path) as book:
            assert list(book.played) == [0]
            assert path.read_bytes() == whole[:line], "so that the next line is a whole one"
            book.add(game(1))
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b"[" * 100_000,
        json.dumps({**json.loads(game(0).to_line()), "schema": 2}).encode(),
        json.dumps({**json.loads(game(0).to_line()), "result": 7}).encode(),
        json.dumps({**json.loads(game(0).to_line()), "number": True}).encode(),
        json.dumps({**json.loads(game(0).to_line()), "actions": "12"}).encode(),
        json.dumps({**json.loads(game(0).to_line()), "actions": [-1]}).encode(),
        json.dumps({**json.loads(game(0).to_line()), "opinions": {"c": "B+1"}}).encode(),
        json.dumps({**json.loads(game(0).to_line()), "ending": "rain"}).encode(),
        json.dumps({**json.loads(game(0).to_line()), "score": float("nan")}).encode(),
        json.dumps({**json.loads(game(0).to_line()), "more": 1}).encode(),
        game(4).to_line().encode(),
    ],
)
def test_a_line_that_is_no_game_is_named(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "games.jsonl").write_bytes(game(1).to_line().encode() + b"\n" + line + b"\n")
    with pytest.raises(TengenError, match=r"games\.jsonl, line 2: not a game of this match"), opened(tmp_path):
        pass


def test_another_match_is_refused_and_says_how_it_differs(tmp_path: Path) -> None:
    with opened(tmp_path):
        pass
    others = [
        ({"games": 6}, "games: 4 -> 6"),
        ({"about": {**ABOUT, "seed": 2}}, "seed: 1 -> 2"),
        ({"about": {"seed": 1, "game": {"size": 5, "komi": 6.5}}}, "game.komi: 7.0 -> 6.5"),
        ({"about": {**ABOUT, "nodes": 5}}, "nodes: null -> 5"),
        ({"names": ("net", "other")}, 'b: "gtp:x --y" -> "other"'),
    ]
    for changed, words in others:
        with pytest.raises(TengenError, match="another match is in there") as caught, opened(tmp_path, **changed):
            pass
        assert words in str(caught.value)
    (tmp_path / "match.json").write_text("{")
    with pytest.raises(TengenError, match="match.json: not valid JSON: .*; choose another --out"), opened(tmp_path):
        pass


def test_a_match_from_before_a_setting_existed_goes_on(tmp_path: Path) -> None:
    search = asdict(SearchSettings())
    old = {key: value for key, value in search.items() if key not in ("value_range", "score_weight")}
    with opened(tmp_path, about={**ABOUT, "search": old}) as book:
        book.add(game(0))
    with opened(tmp_path, about={**ABOUT, "search": search}) as book:
        assert book.missing == [1, 2, 3]
    changed = {**ABOUT, "search": {**search, "value_range": 2.0}}
    with pytest.raises(TengenError, match=r"search\.value_range: 0\.0 -> 2\.0"), opened(tmp_path, about=changed):
        pass


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        opened(tmp_path),
        pytest.raises(TengenError, match="is being used by process .* another --out"),
        opened(tmp_path),
    ):
        pass


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TengenError, match="expected a folder"), opened(tmp_path / "file"):
        pass


def test_what_others_read(tmp_path: Path) -> None:
    with opened(tmp_path) as book:
        empty = book.write(GAME)
        assert not empty.exists()
        book.add(
            game(0, score=18.0, opinions=EngineOpinions(b="W+2.5")),
            game(1, fault="time", ending="time", reason="too slow"),
        )
        path = book.write(GAME)
    first, second = load_records(path)
    assert path.name == "games.sgf"
    assert first.players == NAMES
    assert second.players == NAMES[::-1]
    assert (first.result, first.score, first.ending, first.opening) == (1.0, 18.0, "played out", 1)
    assert dict(first.notes) == {"final score by gtp x --y": "W+2.5"}
    assert (second.result, second.ending, dict(second.notes)) == (-1.0, "time", {"reason": "too slow"})
    assert match.read(tmp_path / "results.jsonl") == [match.MatchResult(*NAMES, 2, 0, 0)]
    assert json.loads((tmp_path / "summary.json").read_text())["wins"] == 2


def test_lines_are_read_as_they_were_written() -> None:
    for one in (game(0), game(1, 0.0, score=-2.5, opinions=EngineOpinions("0", "B+3"), reason="ü\n", seconds=0.25)):
        assert PlayedGame.from_line(one.to_line()) == one
        assert "\n" not in one.to_line()
