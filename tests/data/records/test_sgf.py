"""SGF: what we write is read by another program's reader and by ours, and so is what others write."""

import re
from pathlib import Path
from typing import Any

import jax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sgfmill import sgf as foreign

from tengen import games
from tengen.data.records import moves, sgf
from tengen.data.records.records import Record, RecordError, load_records
from tests.data.records.test_records import played

GAME = games.make("go", size=9)
SMALL = games.make("go", size=3)


def by_sgfmill(text: str) -> Any:
    return foreign.Sgf_game.from_bytes(text.encode())


def test_another_reader_understands_ours() -> None:
    record = Record.of(
        GAME,
        [0, 8, 72, 40, 81, 81],  # the corners A9, J9, A1, the centre, two passes
        values=(0.5, -0.25, None, 1.0, None, 0.0),
        komi=6.5,
        players=("b6c96 [new]", "b6c96:old\\"),
        result=-1.0,
        score=-3.5,
        date="2025-01-31",
        id="17",
    )
    game = by_sgfmill(sgf.write([record]))
    root = game.get_root()
    assert (game.get_size(), game.get_komi(), game.get_charset()) == (9, 6.5, "UTF-8")
    assert (game.get_player_name("b"), game.get_player_name("w")) == ("b6c96 [new]", "b6c96:old\\")
    assert (game.get_winner(), root.get("RE"), root.get("DT"), root.get("GN")) == ("w", "W+3.5", "2025-01-31", "17")
    assert (root.get("GM"), root.get("FF")) == (1, 4)
    assert root.get("RU") == "koPOSITIONALscoreAREAtaxNONEsui0"
    # sgfmill counts rows from the bottom.
    found = [node.get_move() for node in game.get_main_sequence()[1:]]
    assert found == [("b", (8, 0)), ("w", (8, 8)), ("b", (0, 0)), ("w", (4, 4)), ("b", None), ("w", None)]
    comments = [node.get("C") if node.has_property("C") else None for node in game.get_main_sequence()[1:]]
    assert comments == ["value +0.500", "value -0.250", None, "value +1.000", None, "value +0.000"]
    assert sgf.read(sgf.write([record])) == [record]


@pytest.mark.parametrize("seed", range(4))
def test_whole_games(seed: int) -> None:
    record = played("go", seed)
    assert sgf.read(sgf.write([record])) == [record]
    game = by_sgfmill(sgf.write([record]))
    sequence = [node.get_move() for node in game.get_main_sequence()[1:]]
    assert [(colour == "w", move and (2 - move[0]) * 3 + move[1]) for colour, move in sequence] == [
        (ply % 2 == 1, None if action == 9 else action) for ply, action in enumerate(record.actions)
    ]


def test_collections() -> None:
    records = [played("go", seed) for seed in range(3)]
    text = sgf.write(records)
    assert sgf.read(text) == records
    assert len(re.findall(r"^\(;GM", text, re.MULTILINE)) == 3


@pytest.mark.parametrize(
    ("result", "score", "ending", "expected"),
    [
        (1.0, 3.5, "played out", "B+3.5"),
        (-1.0, -81.0, "played out", "W+81"),
        (-1.0, None, "resigned", "W+R"),
        (1.0, None, "time", "B+T"),
        (1.0, None, "forfeit", "B+F"),
        (1.0, None, "unknown", "B+"),
        (0.0, 0.0, "played out", "0"),
        (None, None, "unknown", "Void"),
    ],
)
def test_results(result: float | None, score: float | None, ending: Any, expected: str) -> None:
    record = Record.of(SMALL, [4], result=result, score=score, ending=ending)
    text = sgf.write([record])
    assert by_sgfmill(text).get_root().get("RE") == expected
    assert sgf.read(text) == [record]
    # Without our own comment, as another program would have left it.
    (again,) = sgf.read(re.sub(r"\nC\[tengen.*?[^\\]\]", "", text, count=1, flags=re.DOTALL))
    assert (again.result, again.score, again.ending) == (result, score, ending)


def test_a_position_at_the_start() -> None:
    state = SMALL.init(jax.random.key(0))
    step = jax.jit(SMALL.step)
    for action in (4, 0, 2):
        state = step(state, action)
    record = Record.of(SMALL, [8, 9, 9], start=SMALL.render(state), opening=1)
    text = sgf.write([record])
    assert sgf.read(text) == [record]
    root = by_sgfmill(text).get_root()
    assert root.get_setup_stones() == ({(1, 1), (2, 2)}, {(2, 0)}, set())
    assert root.get("PL") == "w"
    assert [node.get_move()[0] for node in by_sgfmill(text).get_main_sequence()[1:]] == ["w", "b", "w"]


@given(st.lists(st.text(max_size=20), min_size=4, max_size=4), st.lists(st.integers(0, 9), max_size=12))
@settings(max_examples=60)
def test_any_names_round_trip(names: list[str], actions: list[int]) -> None:
    clean = [" ".join("".join(c if c.isprintable() else " " for c in name).split()) for name in names]

    def record(a: str, b: str, c: str, d: str) -> Record:
        return Record.of(SMALL, actions, players=(a, b), date=c, notes={"x": d})

    text = sgf.write([record(*names)])
    assert sgf.read(text) == [record(*clean)]
    assert sgf.read(text.encode()) == [record(*clean)]
    game = by_sgfmill(text)
    assert [game.get_player_name(colour) or "" for colour in "bw"] == clean[:2]
    assert len(game.get_main_sequence()) == len(actions) + 1


@given(st.text())
def test_escapes(text: str) -> None:
    assert sgf.unescape(sgf.escape(text)) == text


FOREIGN = r"""Some server, some day:
(;GM[1]FF[3]SZ[19]CA[UTF-8]AP[CGoban:3]KM[6.50]RU[Japanese]
PlayerBlack[Honinbo \[Shusaku\]]PW[Gennan\
 Inseki]BR[4d]WR[8d]EV[Ear: reddening]RE[B+2.00]DT[1846-09-11]
C[A comment (with brackets; and so on\] ] ;B[qd] ; W [dc](;B[pq]N[main];W[tt](;B[];W[cc])(;B[aa]))(;B[dd];W[ee]))
trailing words"""


def test_a_foreign_file() -> None:
    (record,) = sgf.read(FOREIGN)
    assert record.players == ("Honinbo [Shusaku]", "Gennan Inseki")
    assert (record.result, record.score, record.date) == (1.0, 2.0, "1846-09-11")
    assert record.options == {"size": 19, "komi": 6.5, "ko": "simple", "suicide": False}
    assert record.notes == {"rules": "Japanese", "black rank": "4d", "white rank": "8d", "event": "Ear: reddening"}
    assert [move.name for move in moves.named(record)] == ["R16", "D17", "Q3", "pass", "pass", "C17"]
    assert record.start is None
    assert games.make("go", **record.options).options.komi == 6.5


def test_handicap_stones_that_are_written_as_moves_are_stones() -> None:
    text = "(;SZ[5]HA[2];B[aa]C[one];B[bb];W[cc]C[three];B[dd])"
    (record,) = sgf.read(text)
    assert record.actions == (12, 18)
    assert record.start is not None
    assert [row.split()[1:] for row in record.start.split("\n")[1:3]] == [list("X...."), list(".X...")]
    assert "to play: white" in record.start
    assert sgf.comments(text) == {0: "three"}
    for other in ("(;SZ[5]HA[2];B[aa];W[cc])", "(;SZ[5]HA[x];B[aa];B[bb];W[cc])", "(;SZ[5]HA[2];B[aa];B[];W[cc])"):
        assert sgf.read(other)[0].start is None
        assert sgf.read(other)[0].actions[0] == 0


def test_handicap() -> None:
    text = "(;SZ[9]HA[2]KM[0.5]AB[cg][gc]RE[W+Resign];W[ee];B[ff];W[dd])"
    (record,) = sgf.read(text)
    assert (record.result, record.ending, record.notes) == (-1.0, "resigned", {"handicap": "2"})
    states = list(moves.replay(record))
    assert [int(state.turn) for state in states] == [1, 0, 1, 0]
    assert "X" in GAME.render(states[0])
    assert GAME.render(states[0]) == record.start
    assert int(states[0].komi) == 1
    assert sgf.read(sgf.write([record]))[0].actions == record.actions


@pytest.mark.parametrize(
    ("text", "actions", "first"),
    [
        ("(;SZ[3];B[aa];B[bb];W[cc])", [0, 9, 4, 8], 0),  # handicap stones as moves
        ("(;SZ[3];W[aa];B[bb])", [0, 4], 1),
        ("(;SZ[3]PL[W];B[bb])", [9, 4], 1),
        ("(;SZ[3]AB[aa])", [], 1),
        ("(;SZ[3]AB[aa]AW[bb])", [], 0),
        ("(;SZ[3]AB[aa]AE[aa])", [], 0),
        ("(;SZ[3];B[aa];W[];B[];W[];B[tt])", [0, 9, 9], 0),
        ("(;SZ[3:3];B[ab])", [3], 0),
        ("(;GM[1]SZ[3];)", [], 0),
        ("(;SZ[3](;B[aa](;W[bb])(;W[cc]))(;B[cc]))", [0, 4], 0),
    ],
)
def test_sloppy_files(text: str, actions: list[int], first: int) -> None:
    (record,) = sgf.read(text)
    assert list(record.actions) == actions
    assert int(next(moves.replay(record)).turn) == first


def test_rectangles_of_stones() -> None:
    (record,) = sgf.read("(;SZ[5]AB[aa:bc][ee]AE[ab])")
    assert record.start is not None
    rows = [line.split()[1:] for line in record.start.splitlines()[1:6]]
    assert ["".join(row) for row in rows] == ["XX...", ".X...", "XX...", ".....", "....X"]


@pytest.mark.parametrize(
    ("komi", "expected"),
    [("6.5", 6.5), ("0", 0.0), ("-5.5", -5.5), *((odd, None) for odd in ("375", "3.75", "", "nan", "much", "1e400"))],
)
def test_komi(komi: str, expected: float | None) -> None:
    (record,) = sgf.read(f"(;SZ[19]KM[{komi}];B[aa])")
    assert record.options.get("komi") == expected
    assert record.notes == ({"komi": komi} if komi and expected is None else {})
    assert games.make("go", **record.options)


def test_long_games_are_allowed_their_length() -> None:
    there_and_back = "".join(f";{'BW'[n % 2]}[]" if n % 2 else ";B[aa]" for n in range(60))
    (record,) = sgf.read(f"(;SZ[3]{there_and_back})")
    assert record.options["max_moves"] == 60
    assert games.make("go", **record.options)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "gb18030", "shift_jis", "utf-8-sig"])
def test_encodings(encoding: str) -> None:
    name = {"latin-1": "Müller", "utf-8": "Müller 棋", "utf-8-sig": "棋"}.get(encoding, "表示棋")
    declared = encoding.replace("-sig", "")
    (record,) = sgf.read(f"(;CA[{declared}]SZ[9]PB[{name}];B[aa])".encode(encoding))
    assert record.players[0] == name


def test_undeclared_and_wrong_encodings() -> None:
    assert sgf.read("(;PB[Müller])".encode("latin-1"))[0].players[0] == "Müller"
    assert sgf.read("(;PB[Müller])".encode())[0].players[0] == "Müller"
    for declared in ("nonsense", "zlib", "undefined", "utf-16", "ascii", "idna"):
        assert sgf.read(f"(;CA[{declared}]PB[Müller])".encode())[0].players[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it contains no game"),
        ("hello", "it contains no game"),
        ("()", "it contains no game"),
        ("(;GM[1]", "line 1: the text ends inside a game; it may be cut short"),
        ("(;GM[1]\n;B[aa", r"line 2: B: there is no \] after this"),
        ("(;\n\n?)", "line 3: expected a property, got '\\?\\)'"),
        ("(;GM)", r"line 1: GM: expected a value in \[ \]"),
        ("(;GM[2])", r"expected a game of Go, which is GM\[1\], got GM\[2\]"),
        ("(;SZ[25])", "SZ: expected a square board of 2 to 19 points, got '25'"),
        ("(;SZ[9:13])", "SZ: expected a square board"),
        ("(;SZ[nine])", "SZ: expected a square board"),
        ("(;SZ[9];B[jj])", "node 2: expected a point of a 9x9 board, such as cc, got 'jj'"),
        ("(;SZ[9];B[a])", "node 2: expected a point"),
        ("(;SZ[9];B[AA])", "node 2: expected a point"),
        ("(;SZ[9]AB[zz])", "stones at the start: expected a point"),
        ("(;SZ[9];B[aa];AW[bb])", "node 3: AW puts up stones after the first move"),
        ("(;SZ[9])(;SZ[9];B[zz])", "game 2: node 2"),
        ("(;SZ[9]C[tengen record 1\nrubbish])", "line 2: expected 'key: value'"),
        ("(;SZ[9]C[tengen record 1\ngame: go\noptions: {}])", "another game than this one of Go on 9x9"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        sgf.read(text)


def test_stones_without_liberties_are_refused_when_played() -> None:
    (record,) = sgf.read("(;SZ[3]AB[aa]AW[ab][ba])")
    with pytest.raises(RecordError, match="start: go: the stones around row 1, column 1 have no liberty"):
        next(moves.replay(record))


def test_illegal_moves_are_refused_when_played() -> None:
    (record,) = sgf.read("(;SZ[3];B[bb];W[bb])")
    with pytest.raises(RecordError, match="move 2: B2 is not legal here"):
        list(moves.replay(record))


WHOLE = sgf.write([Record.of(SMALL, [4, 0, 9, 9], values=(0.5, None, 0.1, -1.0), players=("a]", "b\\"), result=1.0)])


def test_cut_short_anywhere() -> None:
    for length in range(len(WHOLE.rstrip())):
        with pytest.raises(RecordError):
            sgf.read(WHOLE[:length])


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)), st.text("(;)[]\\BWACSZ\n aé", max_size=5))
@settings(max_examples=400)
def test_edited_files(a: int, b: int, put: str) -> None:
    try:
        sgf.read((WHOLE[: min(a, b)] + put + WHOLE[max(a, b) :]).encode())
    except RecordError as error:
        assert str(error)  # noqa: PT017 - good or refused, but nothing else


@given(st.binary(max_size=200))
def test_garbage(content: bytes) -> None:
    try:
        sgf.read(b"(;" + content)
    except RecordError as error:
        assert str(error)  # noqa: PT017 - good or refused, but nothing else


def test_deep_and_long_files_are_no_problem() -> None:
    wide = "(;SZ[19]" + "(;B[aa])" * 50_000 + ")"
    assert len(sgf.read(wide)[0].actions) == 1
    with pytest.raises(RecordError, match="cut short"):
        sgf.read("(;C[" + "\\]" * 500_000)


def test_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.SGF").write_text("(;SZ[99])")
    with pytest.raises(RecordError, match=r"x\.SGF: SZ: expected"):
        load_records(tmp_path / "x.SGF")


def test_records_of_foreign_files_can_be_written_again() -> None:
    (record,) = sgf.read(FOREIGN)
    assert sgf.read(sgf.write([record])) == [record]


def test_variations_are_lines_from_the_start() -> None:
    text = "(;SZ[5];B[aa](;W[bb];B[cc])(;W[dd](;B[ee])(;B[ba])(;B[zz]))(;W[ab]AB[ca]))(;SZ[5];B[aa])"
    assert sgf.read(text)[0].actions == (0, 6, 12)
    # The one with a point outside of the board and the one that puts up stones cannot be read.
    assert sgf.variations(text) == [(0, 18, 24), (0, 18, 1)]
    assert sgf.variations(text.encode(), 1) == []


def test_a_variation_in_which_the_other_player_begins_has_a_pass_first() -> None:
    assert sgf.variations("(;SZ[5](;B[aa];W[bb])(;W[cc];B[dd]))") == [(25, 12, 18)]
    assert sgf.variations("(;SZ[5](;B[aa])(;AB[ee];W[cc]))") == [], "these stones are not those of the game"


def test_comments_are_of_the_moves_that_they_stand_at() -> None:
    # White moves twice: a pass of Black is put in between.
    text = r"(;SZ[5]C[root];B[aa]C[one \] two];W[bb];W[cc]C[ three ];B[dd]C[value +0.250])(;SZ[5];B[aa]C[other])"
    assert sgf.comments(text) == {0: "one ] two", 3: "three"}
    assert sgf.comments(text.encode(), 1) == {0: "other"}
    reviewed = "(;SZ[5];B[aa]C[value +0.250\nloses nothing];W[bb]C[value -0.250])"
    assert (sgf.comments(reviewed), sgf.comments(reviewed, own=True)) == ({}, {0: "loses nothing"})
    assert len(sgf.read(text)[0].actions) == 5
