import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import sgfmill.sgf

from tengen.analysis import review_output
from tengen.analysis.review import Review
from tengen.data.records import sgf, text
from tengen.data.records.records import Annotation, Record
from tests.helpers.analyses import go_review, judged, make, state_after
from tests.helpers.patience import LONG

GNUGO = Path("/usr/games/gnugo")


def test_another_reader_of_sgf_finds_moves_comments_and_variations() -> None:
    content = review_output.as_record(go_review())
    game = sgfmill.sgf.Sgf_game.from_string(content)
    assert (game.get_size(), game.get_komi()) == (5, 6.5)
    assert game.get_player_name("w") == "Go ] \\ Seigen"
    main = game.get_main_sequence()[1:]
    # sgfmill counts rows from below.
    assert [node.get_move() for node in main] == [("b", (2, 2)), ("w", (0, 0)), ("b", (3, 2)), ("w", None)]
    assert "blunder: loses 0.800" in main[1].get("C")
    assert main[1].get("BM") == 2
    assert main[1].get_raw("SBKV") == b"95.00"
    assert "expected: C4" in main[2].get("C")
    variation = main[0][1]
    line = [variation.get_move()]
    while len(variation):
        variation = variation[0]
        line.append(variation.get_move())
    assert line == [("w", (3, 3)), ("b", None), ("w", (1, 1))]
    assert len(main[1]) == 1  # what was best has no variation
    assert len(game.get_root()) == 2


def test_tengen_reads_the_same_game_with_the_values_of_the_review() -> None:
    review = go_review()
    (record,) = sgf.read(review_output.as_record(review))
    assert record.actions == review.record.actions
    assert record.values == (0.10, -0.90, 0.92, -1.0)
    assert record.players == review.record.players
    assert record.notes["reviewed by"] == "judge"
    assert "mean loss" in record.notes["review 1"]


def test_what_others_have_said_is_kept() -> None:
    review = replace(go_review(until=2), comments={1: "Terrible ] move", 2: "He resigns"})
    content = review_output.as_record(review)
    main = sgfmill.sgf.Sgf_game.from_string(content).get_main_sequence()[1:]
    assert main[1].get("C").endswith("\n\nTerrible ] move")
    assert main[2].get("C") == "He resigns"
    assert sgf.comments(content) == {2: "He resigns"}  # the others begin with a value of the review


def test_what_was_not_reviewed_keeps_its_value() -> None:
    review = go_review(until=2)
    review = replace(review, record=replace(review.record, values=(None, None, 0.25, None)))
    (record,) = sgf.read(review_output.as_record(review))
    assert record.values == (0.10, -0.90, 0.25, None)
    assert "stopped after 2 of 4 moves" in record.notes["review 1"]


@pytest.mark.skipif(not GNUGO.exists(), reason="GNU Go is not installed")
def test_gnu_go_reads_it(tmp_path: Path) -> None:
    (tmp_path / "game.sgf").write_text(review_output.as_record(go_review()))
    commands = f"loadsgf {tmp_path / 'game.sgf'}\nlist_stones black\nlist_stones white\nquit\n"
    done = subprocess.run([GNUGO, "--mode", "gtp"], input=commands, capture_output=True, text=True, timeout=LONG)
    assert done.stdout.split("\n\n")[:3] == ["= black", "= C4 C3", "= A1"]


def test_a_long_game_with_a_variation_at_every_move_can_be_read() -> None:
    game = make("go", size=5, komi=6.5)
    record = Record.of(game, [25, *[n % 25 for n in range(400)]])
    content = sgf.write_annotated(record, {ply: Annotation("c", {}, (24, 0)) for ply in range(401)})
    (back,) = sgf.read(content)
    assert back.actions == record.actions
    assert len(sgfmill.sgf.Sgf_game.from_string(content).get_main_sequence()) == 402


def test_other_games_are_text_with_comments() -> None:
    game = make("tic_tac_toe")
    state = state_after(game, "")
    record = Record.of(game, [0, 4], players=("Anna", ""))
    moves = (
        judged(game, state, 1, "a1", ["b2", "a1"], -0.5, 0.5),
        judged(game, state_after(game, "a1"), 2, "b2", ["b2"], 0.5, 0.5),
    )
    content = review_output.as_record(Review("judge", game, record, moves))
    assert "\n1 0 a1 -0.500\n# +0.450 before, -0.500 after for x, choice 3\n# blunder: loses 1.000\n" in content
    assert "\n# first choice +0.500: b2 a1\n2 1 b2 +0.500\n" in content
    (back,) = text.read(content)
    assert (back.actions, back.values) == ((0, 4), (-0.5, 0.5))
    assert (review_output.record_ending("go"), review_output.record_ending("hex")) == (".sgf", ".txt")
