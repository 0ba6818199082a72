"""Records of every game come back from plain text as they were, and texts that are none are refused with a reason."""

import codecs
import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tengen import games
from tengen.data.records import moves, sgf, text
from tengen.data.records.records import Record, RecordError, load_records, save_records
from tengen.data.store.writer import Writer
from tengen.games.core import Game

OPTIONS: dict[str, dict[str, Any]] = {"go": {"size": 3}, "hex": {"size": 3}, "hironaka": {"max_moves": 12}}


@cache
def game_of(name: str) -> tuple[Game, Any, Any]:
    game = games.make(name, **OPTIONS.get(name, {}))
    return game, jax.jit(game.step), jax.jit(game.legal_actions)


@cache
def played(name: str, seed: int = 0) -> Record:
    """A random game to its end."""
    game, step, legal = game_of(name)
    draw = np.random.default_rng(seed)
    start = state = game.init(jax.random.key(seed))
    actions = []
    while not game.is_over(state):
        actions.append(int(draw.choice(np.flatnonzero(legal(state)))))
        state = step(state, np.int32(actions[-1]))
    return Record.of(
        game,
        actions,
        values=tuple(None if n % 3 == 0 else round(float(draw.uniform(-1, 1)), 3) for n in range(len(actions))),
        players=("net-s1-d2", "net [b] \\ö"),
        result=round(float(game.returns(state)[0]), 6),
        score=2.5 if name == "go" else None,
        network="net-s1-d2",
        date="2025-01-31",
        id=f"{seed:016x}",
        opening=2,
        start=game.render(start) if name == "hironaka" else None,
        notes={"temperature": "0.8: falling"},
    )


def _names() -> list[Any]:
    """Chess is compiled for long."""
    return [pytest.param(name, marks=pytest.mark.slow if "chess" in name else ()) for name in games.names()]


@pytest.mark.parametrize("name", _names())
def test_round_trip_of_every_game(name: str) -> None:
    records = [played(name, seed) for seed in range(2)]
    assert text.read(text.write(records)) == records


@pytest.mark.parametrize("name", _names())
def test_names_and_players_are_the_game_s(name: str) -> None:
    """The quick way, which does not look at positions, against the one that does."""
    game, step, _ = game_of(name)
    record = played(name)
    state = game.init(jax.random.key(0))
    for action, move in zip(record.actions, moves.named(record), strict=True):
        assert move == (int(game.to_play(state)), game.action_name(state, action))
        state = step(state, np.int32(action))


@pytest.mark.parametrize("name", _names())
def test_replay(name: str) -> None:
    record = played(name)
    *_, last = moves.replay(record)
    game = game_of(name)[0]
    assert game.is_over(last)
    assert float(game.returns(last)[0]) == pytest.approx(record.result, abs=1e-6)
    with pytest.raises(RecordError, match=f"move {len(record.actions) + 1}: .* after the game was over"):
        list(moves.replay(dataclasses.replace(record, actions=(*record.actions, 0), values=())))


def test_the_format_is_what_the_documentation_shows() -> None:
    record = Record(
        "connect_four", {}, (3, 3), values=(0.0312, None), players=("net-s1000-d500", ""), result=1.0, opening=1
    )
    shown = (
        "tengen record 1\ngame: connect_four\noptions: {}\nplayer 0: net-s1000-d500\nresult: 1\n"
        "ending: played out\nopening: 1\nmoves: 2\n1 0 4 +0.031\n2 1 4 -\n"
    )
    assert text.write([record]) == shown
    (again,) = text.read("# by hand\n\n" + shown.replace("\n", "\r\n") + "\n#\n")
    assert again == dataclasses.replace(record, values=(0.031, None))


def test_a_drawn_komi_is_in_the_options() -> None:
    record = Record.of(games.make("go", size=5), [0], komi=3.5)
    assert record.options["komi"] == 3.5
    assert int(next(moves.replay(record)).komi) == 7


def test_a_start_where_the_second_player_moves() -> None:
    game, step, _ = game_of("go")
    start = game.render(step(game.init(jax.random.key(0)), np.int32(4)))
    record = Record.of(game, [0, 9, 9], start=start)
    assert [move.player for move in moves.named(record)] == [1, 0, 1]
    assert text.read(text.write([record])) == [record]


@given(
    st.lists(st.text(max_size=30), min_size=5, max_size=5),
    st.sampled_from(["played out", "resigned", "time", "forfeit", "unknown"]),
    st.lists(st.tuples(st.integers(0, 6), st.none() | st.integers(-1000, 1000)), max_size=20),
)
def test_any_names_round_trip(names: list[str], ending: Any, played: list[tuple[int, int | None]]) -> None:
    clean = [" ".join("".join(c if c.isprintable() else " " for c in name).split()) for name in names]
    actions = tuple(action for action, _ in played)
    values = tuple(None if value is None else value / 1000 for _, value in played)

    def record(a: str, b: str, c: str, d: str, e: str) -> Record:
        return Record(
            "connect_four", {}, actions, values, players=(a, b), network=c, date=d, notes={"x": e}, ending=ending
        )

    assert text.read(text.write([record(*names)])) == [record(*clean)]


def test_values_and_actions_go_together() -> None:
    with pytest.raises(ValueError, match="2 actions, but 1 values"):
        Record("connect_four", {}, (1, 2), (0.5,))
    with pytest.raises(ValueError, match="ending"):
        Record("connect_four", {}, (), ending="bored")  # pyright: ignore[reportArgumentType]


GOOD = text.write([Record("connect_four", {}, (3, 3, 0), players=("a", "b"), result=-1.0)])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tengen record 1", "tengen record 2", "expected a record, which begins with"),
        ("game: connect_four", "game connect_four", "line 2: expected 'key: value'"),
        ("game: connect_four\n", "", "without a line 'game: ...'"),
        ("game: connect_four", "game: checkers", "options: checkers: "),
        ("options: {}\n", "", "without a line 'options: ...'"),
        ("options: {}", "options: []", "line 3: options: expected a mapping, got a list"),
        ("options: {}", "options: {", "line 3: options: "),
        ("options: {}", "options: " + "[" * 100_000, "line 3: options: "),
        ("options: {}", 'options: {"size": 3}', "options: .*size"),
        ("options: {}", 'options: {"name": "x"}', "options: "),
        ("player 0: a", "player 2: a", "line 4: player 2: expected one of"),
        ("result: -1", "result: won", "line 6: result: expected a number"),
        ("result: -1", "result: 3", "line 6: result: expected a number from -1 to 1"),
        ("result: -1", "result: -1\nresult: -1", "line 7: result is there twice"),
        ("result: -1", "result: nan", "line 6"),
        ("result: -1", "opening: -1", "line 6: opening: expected a whole number"),
        ("result: -1", "start: 3", "line 6: start: expected text, got 3"),
        ("result: -1", 'start: "3"', "start: connect_four"),
        ("ending: played out", "ending: well", "line 7: ending: expected one of"),
        ("moves: 3\n", "", "no line 'moves: ...'"),
        ("moves: 3", "moves: 4", "line 8: .*'4' moves, and 3 follow; the text may be cut short"),
        ("1 0 4 -", "1 0 4", "line 9: expected '1 PLAYER MOVE VALUE'"),
        ("1 0 4 -", "2 0 4 -", "line 9: expected '1 PLAYER MOVE VALUE'"),
        ("1 0 4 -", "1 1 4 -", "move 1: expected a move of player 0, got one of player 1"),
        ("1 0 4 -", "1 2 4 -", "line 9: expected '1 PLAYER"),
        ("1 0 4 -", "1 0 8 -", "move 1: connect_four: no move is called '8'"),
        ("1 0 4 -", "1 0 4 2.5", "line 9: expected a number from -1 to 1"),
        ("1 0 4 -", "1 0 4 x", "line 9: expected a number"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(RecordError, match=message):
        text.read(GOOD.replace(old, new, 1))


def test_cut_short_anywhere() -> None:
    """Only the end of the last line, and what is after it, can be missing without notice."""
    for length in range(len(GOOD) - 1):
        if GOOD[:length].strip() != GOOD.strip():
            with pytest.raises(RecordError):
                text.read(GOOD[:length])


@given(st.text(max_size=200), st.booleans())
def test_garbage(garbage: str, begins_well: bool) -> None:
    with pytest.raises(RecordError):
        text.read(("tengen record 1\n" if begins_well else "") + garbage)


@given(st.integers(0, len(GOOD)), st.integers(0, len(GOOD)), st.text(max_size=4))
@settings(max_examples=200)
def test_edited_texts(a: int, b: int, put: str) -> None:
    try:
        text.read(GOOD[: min(a, b)] + put + GOOD[max(a, b) :])
    except RecordError as error:
        assert str(error)  # noqa: PT017 - good or refused, but nothing else


def test_illegal_moves_in_games_that_are_played_again() -> None:
    shown = text.write([played("hironaka")])
    first = shown.split("\n1 0 ")[1].split()[0]
    with pytest.raises(RecordError, match="move 1: hironaka: no move is called '{0}'"):
        text.read(shown.replace(f"\n1 0 {first}", "\n1 0 {0}"))


@pytest.mark.parametrize("name", ["game.sgf", "game.SGF", "game.txt", "game", "game.v2.final"])
@pytest.mark.parametrize("before", [b"", b"\n\r\n  \t", codecs.BOM_UTF8, codecs.BOM_UTF8 + b"\n", "utf-16"])
def test_a_file_is_known_by_its_content(name: str, before: bytes | str, tmp_path: Path) -> None:
    path = tmp_path / name
    for record, words in ((played("connect_four"), text.write), (played("go"), sgf.write)):
        content = words([record])
        path.write_bytes(content.encode(before) if isinstance(before, str) else before + content.encode())
        assert load_records(path) == [record]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "an empty file is neither SGF"),
        (b"\n \n", "an empty file is neither SGF"),
        (b"<html>1. e4 e5", "the file is neither SGF, which begins with .*, nor a record of Tengen"),
        (bytes(range(256)), "the file is neither SGF"),
        (b"tengen record 2\ngame: go", "expected a record, which begins with the line 'tengen record 1'"),
        (b"(;SZ[9]", "cut short"),
    ],
)
def test_what_is_no_record_is_named(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "game.sgf"
    path.write_bytes(content)
    with pytest.raises(RecordError, match=rf"game\.sgf: .*{words}"):
        load_records(path)


def test_files(tmp_path: Path) -> None:
    records = [played("connect_four"), played("go")]
    with Writer() as writer:
        writer.put(lambda: save_records(tmp_path / "a" / "games.txt", records))
        writer.put(lambda: save_records(tmp_path / "a" / "games.sgf", records[1:]))
    assert load_records(tmp_path / "a" / "games.txt") == records
    assert load_records(tmp_path / "a" / "games.sgf") == records[1:]
    with pytest.raises(FileNotFoundError, match=r"none\.sgf: cannot be read: No such file"):
        load_records(tmp_path / "none.sgf")
    (tmp_path / "bad.txt").write_bytes(b"tengen record 1\n\xff")
    with pytest.raises(RecordError, match=r"bad\.txt: expected text in UTF-8, byte 16"):
        load_records(tmp_path / "bad.txt")
    (tmp_path / "empty.txt").write_bytes(b"")
    with pytest.raises(RecordError, match=r"empty\.txt: an empty file is neither SGF, which begins with \(;, nor"):
        load_records(tmp_path / "empty.txt")
    with pytest.raises(ValueError, match="SGF is for go, and this is a game of connect_four"):
        save_records(tmp_path / "x.sgf", records)
    assert not (tmp_path / "x.sgf").exists()
