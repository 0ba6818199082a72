"""Chess records as PGN, with python-chess as a second opinion."""

import io
from pathlib import Path
from typing import Any

import pytest

from tengen.data.records import moves, pgn
from tengen.data.records.records import Annotation, Record, RecordError, load_records, record_format, save_records
from tengen.games.chess import Chess

OPERA = """[Event "Paris"]
[Date "1858.??.??"]
[White "Morphy, Paul"]
[Black "Duke Karl / Count Isouard"]
[Result "1-0"]
[ECO "C41"]

1. e4 e5 2. Nf3 d6 3. d4 {A comment} Bg4?! $6 (3... exd4 4. Nxd4 (4. Qxd4 Nc6)) 4.dxe5 Bxf3 5. Qxf3
dxe5 ; the rest of a line
6. Bc4 Nf6 7. Qb3 Qe7 8. Nc3 c6 9. Bg5 b5 10. Nxb5 cxb5 11. Bxb5+ Nbd7 12. O-O-O Rd8
13. Rxd7 Rxd7 14. Rd1 Qe6 15. Bxd7+ Nxd7 16. Qb8+!! Nxb8 17. Rd8# 1-0

[Event "Short"]
[Result "1/2-1/2"]
[SetUp "1"]
[FEN "8/P6k/8/8/8/8/7P/K7 w - - 0 1"]

1. a8=N Kg6 1/2-1/2
"""
SAN = "e4 e5 Nf3 d6 d4 Bg4 dxe5 Bxf3 Qxf3 dxe5 Bc4 Nf6 Qb3 Qe7 Nc3 c6 Bg5 b5 Nxb5 cxb5 Bxb5+ Nbd7 O-O-O Rd8 Rxd7 Rxd7"
SAN += " Rd1 Qe6 Bxd7+ Nxd7 Qb8+ Nxb8 Rd8#"


@pytest.fixture(scope="module")
def opera() -> Record:
    return pgn.read(OPERA.encode())[0]


def test_a_file_from_elsewhere(opera: Record) -> None:
    chess = moves.game_of(opera)
    assert isinstance(chess, Chess)
    assert chess.line(moves.start(chess, opera), opera.actions) == SAN.split()
    assert opera.players == ("Morphy, Paul", "Duke Karl / Count Isouard")
    assert (opera.result, opera.date, opera.notes) == (1.0, "", {"eco": "C41"})
    second = pgn.read(OPERA.encode())[1]
    assert second.result == 0
    assert second.start is not None
    assert "fen: 8/P6k/" in second.start
    assert len(second.actions) == 2
    assert pgn.comments(OPERA.encode(), 0) == {4: "A comment", 9: "the rest of a line"}


def test_what_is_written_is_read_again(opera: Record, tmp_path: Path) -> None:
    values = (0.25, None, *[-0.5] * (len(opera.actions) - 2))
    record = Record("chess", {"chess960": False, "max_moves": 512}, opera.actions, values, opera.players, 1.0, id="x")
    save_records(tmp_path / "games.pgn", [record, record])
    assert load_records(tmp_path / "games.pgn") == [record, record]
    later = pgn.read(OPERA.encode())[1]
    save_records(tmp_path / "later.pgn", [later])
    assert load_records(tmp_path / "later.pgn") == [later]
    assert record_format((tmp_path / "games.pgn").read_bytes()) == "pgn"


def test_python_chess_reads_what_is_written(opera: Record) -> None:
    other = pytest.importorskip("chess.pgn", reason="python-chess is not installed")
    notes = {3: Annotation("bad }", {}, opera.actions[3:6], "better", "??")}
    found = other.read_game(io.StringIO(pgn.write_annotated(opera, notes)))
    assert found.errors == []
    assert [node.san() for node in found.mainline()] == SAN.split()
    assert found.headers["White"] == "Morphy, Paul"
    marked = list(found.mainline())[3]
    assert marked.nags == {4}
    assert marked.comment == "bad )"
    assert len(marked.parent.variations) == 2


def test_variations_are_lines_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"1. e4 (1. d4 d5 (1... Nf6 {a comment} 2. c4) 2. c4) 1... e5! (1... c5 2. Nf9 Nc6) 2. Nf3 *"
    (record,) = pgn.read(text)
    chess = moves.game_of(record)
    assert isinstance(chess, Chess)
    lines = [chess.line(moves.start(chess, record), line) for line in pgn.variations(text)]
    assert lines == [["d4", "Nf6", "c4"], ["d4", "d5", "c4"], ["e4", "c5"]]  # Nf9 is not on the board
    monkeypatch.setattr(pgn, "MOST_VARIATIONS", 1)
    assert len(pgn.variations(b"1. e4 " + b"(1. d4 " * 5000 + b")" * 5000 + b" *")) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[Result "*"]\n\n1. e4 e4 *', "move 2: .*'e4' is not a legal move here"),
        ('[Variant "Atomic"]\n\n1. e4 *', "Variant: Tengen plays chess and Chess960"),
        ('[Variant "Chess960"]\n\n1. e4 *', "without the tag FEN"),
        ('[FEN "8/8/8 w"]\n\n1. e4 *', "FEN: "),
        ('[Result "*"]\n\n1. e4 ) *', "a variation ends that never began"),
        ('[Result "*"]\n\n1. e4 & *', "expected a move, got '& "),
        ('[TengenRecord "{"]\n\n1. e4 *', "TengenRecord: expected JSON"),
        ('[TengenRecord "[1]"]\n\n1. e4 *', "TengenRecord: expected a list"),
        ("", "neither SGF"),
    ],
)
def test_damaged_files(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.pgn").write_text(text)
    with pytest.raises(RecordError, match=message):
        load_records(tmp_path / "a.pgn")


def test_moves_after_a_draw_by_rule_are_left_out() -> None:
    shuffle = "Nf3 Nf6 Ng1 Ng8 " * 3
    record = pgn.read(f'[Result "1-0"]\n\n{shuffle}1-0'.encode())[0]
    assert len(record.actions) == 8
    assert record.notes == {"left out": "4 moves after threefold repetition, which ends a game by Tengen's rules"}


def test_a_game_of_many_tags_and_comments_is_read_once() -> None:
    class Text(str):
        copied = 0

        def __getitem__(self, key: Any) -> str:
            found = super().__getitem__(key)
            Text.copied += len(found)
            return found

    game = pgn._parse(Text('[Event "x"]\n' * 200 + '[White "me"]\n\n1. e4 {one} { } {two} e5 *'))
    assert game.tags == {"Event": "x", "White": "me"}
    assert game.moves == [("e4", "one\ntwo"), ("e5", "")]
    assert Text.copied < 100


def test_a_position_that_is_none_is_not_quoted_at_length() -> None:
    with pytest.raises(RecordError, match="FEN: chess: expected") as error:
        pgn.read(b'[FEN "' + b"9/" * 10_000 + b'"]\n\n*')
    assert len(str(error.value)) < 400
